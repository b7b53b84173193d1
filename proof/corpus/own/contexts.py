"""Where values stand: each line is a kind and a text with «slots», the names of values to put in.

What is in a slot is labelled with the category of its value; ‹slots› are filled and not labelled.
"""

# ruff: noqa: E501 - a line of the corpus is a line here

AROUND_TOKENS = r"""
env|export «name»=«token»
env|«name»="«token»"
env|«name»='«token»'   # rotated last week
shell|curl -sS -H "Authorization: Bearer «token»" https://api.‹host›/v1/me
shell|curl https://‹host›/v2/things?access_token=«token»&page=2
shell|git clone https://oauth2:«token»@‹host›/team/repo.git
shell|docker run --rm -e «name»=«token» app:latest
shell|$ echo «token» | ‹word› login --with-token
code|client = Client("«token»")
code|const client = new Client({ apiKey: "«token»" });
code|	«name» = "«token»" // TODO: move to vault
code|os.environ['«name»'] = '«token»'
code|var key = `«token»`;
code|assert parse(b"«token»") is None
json|{"level":"info","msg":"auth","token":"«token»","ms":12}
json|{"env":{"«name»":"«token»","DEBUG":"1"}}
json|"{\\"key\\":\\"«token»\\",\\"n\\":1}"
json|{"content":"first line\\n«token»\\nlast line"}
yaml|  «name»: «token»
yaml|    - name: «name»\n      value: "«token»"
diff|-«name»=‹word›\n+«name»=«token»
diff|@@ -1,3 +1,3 @@\n-key = "old"\n+key = "«token»"
log|2026-03-04T10:11:12Z ERROR request failed: 401 for key «token» (attempt 2)
log|[worker-3] loaded credentials («token») from env
log|DEBUG headers={'x-api-key': '«token»', 'accept': '*/*'}
prose|Here is the key you asked for: «token». Please do not share it.
prose|I pasted «token» into the config and it still fails.
prose|it says "«token» is not valid anymore"?
url|https://‹host›/callback?state=1&code=2&key=«token»#top
url|https://‹host›/x%3Ftoken%3D«token»%26n%3D1
other|| ci | «token» | 2026-01-02 |
other|<add key="‹word›" value="«token»" />
other|«token»
other|;«token»;
other|(«token»)
"""

GENERIC = r"""
env|DB_PASSWORD=«password»
env|POSTGRES_PASSWORD="«password»"
env|SECRET_KEY_BASE=«hex64»
env|SESSION_SECRET='«random32»'
env|JWT_SIGNING_KEY=«random43»
env|MAIL_PASS=«password»
env|export REDIS_AUTH_TOKEN=«random24»
env|STRIPE_WEBHOOK_SIGNING_SECRET=«random32»
env|DATADOG_API_KEY=«hex32»
env|ALGOLIA_ADMIN_KEY=«hex32»
env|HEROKU_API_KEY=«uuid»
env|AWS_SECRET_ACCESS_KEY=«base40»
env|aws_secret_access_key = «base40»
yaml|password: «password»
yaml|  password: "«password»"
yaml|  client_secret: «random32»
yaml|    apiKey: «random24»
yaml|rabbitmq:\n  user: app\n  password: «password»
yaml|        - name: DB_PASSWORD\n          value: «password»
json|{"user":"svc","password":"«password»"}
json|{"auth":{"clientId":"app","clientSecret":"«random32»"}}
json|{"api_key": "«random24»", "region": "eu"}
json|"{\\"password\\": \\"«password»\\"}"
json|{"accessToken":"«random43»","expiresIn":3600}
json|{"private_key_password": "«password»"}
json|{"smtp":{"host":"mail","pass":"«password»"}}
code|password = "«password»"
code|const password = '«password»';
code|String dbPassword = "«password»";
code|conn = connect(host="db", user="app", password="«password»")
code|private static final String SECRET = "«random24»";
code|api_key: str = "«random32»"
code|let token: string = "«random32»"
code|config['secret_key'] = '«random32»'
code|os.environ["API_TOKEN"] = "«random24»"
code|settings.SECRET_KEY = "«random43»"
code|secret := "«random24»"
code|if token == "«random24»" {
code|$password = '«password»';
code|define('DB_PASSWORD', '«password»');
code|headers = {"X-Api-Key": "«random24»"}
code|request.setHeader("X-Auth-Token", "«random32»");
code|const secret = process.env.SECRET || "«random24»";
code|key = os.getenv("API_KEY", "«random24»")
code|#define WIFI_PASSWORD "«password»"
code|spring.datasource.password=«password»
code|<password>«password»</password>
code|<add key="ApiKey" value="«random24»" />
code|<property name="password" value="«password»"/>
code|ALTER USER app WITH PASSWORD '«password»';
code|CREATE USER 'app'@'%' IDENTIFIED BY '«password»';
code|Server=db;Database=app;User Id=sa;Password=«password»;Encrypt=true
code|DefaultEndpointsProtocol=https;AccountName=store;AccountKey=«base88»;EndpointSuffix=core
shell|mysql -u root -p«password» app
shell|mysqldump --user=root --password=«password» app > dump.sql
shell|sshpass -p '«password»' ssh deploy@host
shell|PGPASSWORD=«password» psql -h db app
shell|redis-cli -a «password» ping
shell|curl -u admin:«password» https://‹host›/
shell|docker login -u ci -p «password» registry
shell|tool --token «random24» --verbose
shell|tool --password «password» --user me
shell|gh secret set API_KEY --body ‹word›; vault login token=«random24»
log|connecting with password=«password» to db
log|2026-01-01 10:00:00 WARN using api_key=«random24»
log|{"level":"debug","client_secret":"«random32»"}
log|token: «random32» accepted
prose|the admin password is «password» for now
prose|my api key is «random24» but it returns 403
prose|Password: «password»
prose|use secret `«random24»` for staging
other|machine git.host login me password «password»
other|//registry.host/:_authToken=«uuid»
other|db.host:5432:app:owner:«password»
other|root:«crypt»:19000:0:99999:7:::
diff|-  password: changeme\n+  password: «password»
diff|+    "secret": "«random32»",
ini|[client]\nuser=app\npassword=«password»
toml|token = "«random24»"
toml|[database]\npassword = "«password»"
"""

HEADERS = r"""
auth_header|shell|curl -H "Authorization: Token «random32»" https://‹host›
auth_header|log|> Authorization: Bearer «random43»
auth_header|code|req.headers["Authorization"] = "Bearer «random32»"
auth_header|json|{"headers":{"Authorization":"Bearer «random43»"}}
auth_header|log|Proxy-Authorization: Basic «basic»
auth_header|prose|send `Authorization: Basic «basic»` with it
auth_header|code|axios.get(u, { headers: { Authorization: 'Bearer «random32»' } })
auth_header|log|authorization=ApiKey «random32»
auth_header|shell|http GET x 'Authorization:Bearer «random43»'
cookie|log|Cookie: theme=dark; sessionid=«random32»
cookie|log|< Set-Cookie: sid=«random24»; Path=/; HttpOnly
cookie|code|headers: { Cookie: 'JSESSIONID=«hexup32»' }
cookie|shell|curl -b 'sessionid=«random32»; theme=dark' https://‹host›
cookie|shell|curl --cookie "PHPSESSID=«lower26»" https://‹host›
cookie|json|{"cookie":"connect.sid=s%3A«random32»"}
cookie|code|document.cookie = "auth_token=«random32»";
cookie|log|cookies={'sessionid': '«random32»', 'csrftoken': '«random32»'}
database_url|env|DATABASE_URL=postgres://app:«urlpass»@db.host:5432/app
database_url|code|engine = create_engine("mysql+pymysql://root:«urlpass»@10.0.0.5/app")
database_url|yaml|url: mongodb+srv://svc:«urlpass»@cluster0.host/test?retryWrites=true
database_url|log|cannot connect to redis://:«urlpass»@cache:6379/0
database_url|json|{"dsn":"amqp://mq:«urlpass»@rabbit:5672//"}
basic_auth_url|url|https://deploy:«urlpass»@‹host›/repo.git
basic_auth_url|shell|pip install --index-url https://ci:«urlpass»@‹host›/simple pkg
basic_auth_url|shell|wget ftp://mirror:«urlpass»@files.host/a.tgz
private_key|other|-----BEGIN «pemkind»PRIVATE KEY-----\n«pem»\n-----END «pemkind»PRIVATE KEY-----
private_key|json|{"key":"-----BEGIN PRIVATE KEY-----\\n«pemline»\\n-----END PRIVATE KEY-----\\n"}
private_key|code|KEY = '''-----BEGIN RSA PRIVATE KEY-----\n«pem»\n-----END RSA PRIVATE KEY-----'''
private_key|yaml|  key: |\n    -----BEGIN OPENSSH PRIVATE KEY-----\n    «pemline»\n    «pemline»\n    -----END OPENSSH PRIVATE KEY-----
private_key|env|SSH_KEY="-----BEGIN EC PRIVATE KEY-----\\n«pemline»\\n-----END EC PRIVATE KEY-----"
private_key|diff|+-----BEGIN RSA PRIVATE KEY-----\n+«pemline»\n+«pemline»\n+-----END RSA PRIVATE KEY-----
private_key|log|read key -----BEGIN PRIVATE KEY----- «pemline» (truncated)
kubernetes_secret|yaml|apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\ntype: Opaque\ndata:\n  username: «b64»\n  password: «b64»
kubernetes_secret|yaml|apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  DATABASE: "«password»"
kubernetes_secret|json|{"kind":"Secret","apiVersion":"v1","data":{"tls":"«b64»"},"metadata":{"name":"x"}}
kubernetes_secret|yaml|kind: Secret\ndata:\n  ca.crt: «b64»\nmetadata:\n  name: x
azure_sas|url|https://store.blob.core.windows.net/c/f?sv=2024-01-01&se=2026-01-01&sr=b&sp=r&sig=«sas»
signed_url|url|https://b.s3.amazonaws.com/f?X-Amz-Expires=60&X-Amz-Signature=«hex64»
"""

PEOPLE = r"""
email|prose|ask «email» about it
email|log|login failed for «email» from 10.0.0.1
email|json|{"user_email":"«email»","model":"x"}
email|code|send_mail(to=["«email»"])
email|other|<«email»>
email|url|mailto:«email»?subject=hi
email|url|https://‹host›/u?email=«emailquoted»
email|log|To: «email», Cc: nobody
phone|prose|call me on «phone» tomorrow
phone|json|{"phone":"«phone»"}
phone|log|sms to «phone» queued
phone|other|Tel.: «phone»
card|prose|my card is «card» and it was declined
card|json|{"card_number":"«card»"}
card|json|{"pan": «cardplain», "n": 1}
card|log|charge «cardplain» declined
iban|prose|please pay to «iban» today
iban|json|{"iban":"«iban»"}
iban|other|IBAN: «iban»
national_id|prose|her SSN is «ssn»
national_id|json|{"ssn":"«ssn»"}
national_id|prose|CPF «cpf» do cliente
national_id|log|user nino=«nino» verified
national_id|prose|codice fiscale «fiscale»
national_id|prose|DNI «dni» caducado
national_id|json|{"personnummer":"«swedish»"}
national_id|prose|Aadhaar: «aadhaar»
national_id|prose|身份证 «chinese»
national_id|prose|numéro «insee» de sécurité sociale
ip|log|connection from «ip» port 52144
ip|log|«ip» - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 512
ip|shell|ssh root@«ip»
ip|json|{"client_ip":"«ip»"}
ip|code|HOST = "«ip»"
ip|url|http://«ip»:8080/health
ip|prose|the server at «ip» is down
ip|log|peer «ip6» closed
mac|log|eth0: link up, addr «mac»
mac|json|{"mac":"«mac»"}
mac|other|ether «mac» txqueuelen 1000
crypto_address|prose|send it to «bitcoin»
crypto_address|prose|wallet «segwit» please
crypto_address|json|{"to":"«ethereum»","value":1}
home_path|log|File "/home/«user»/work/app.py", line 3
home_path|shell|cd /Users/«user»/src && ls
home_path|log|C:\\Users\\«user»\\AppData\\Local\\Temp
home_path|json|{"cwd":"/Users/«user»/proj","n":1}
home_path|json|{"cwd":"C:\\\\Users\\\\«user»\\\\proj"}
home_path|other|~/.claude/projects/-Users-«user»-code/a.jsonl
home_path|url|file:///home/«user»/notes.md
hostname|log|Nov 16 15:31:37 «machine» sshd[123]: Accepted publickey
hostname|shell|ping «local»
hostname|log|hostname=«machine»
hostname|json|{"hostname":"«machine»","n":1}
hostname|log|Linux «machine» 6.1.0-18-amd64 #1 SMP
hostname|url|http://«local»:8080/
hostname|log|on «desktop» as admin
git_author|log|Author: «person» <«email»>
git_author|log|Co-authored-by: «person» <«email»>
git_author|shell|git config user.name "«person»"
git_author|log|Signed-off-by: «person» <«email»>
git_author|env|GIT_AUTHOR_NAME="«person»"
"""

TRAPS = r"""
uuid|json|{"id":"‹uuid›","session_id":"‹uuid›"}
uuid|log|request ‹uuid› took 12ms
lock_hash|lockfile|    "integrity": "sha512-‹base88›",
lock_hash|lockfile|    {file = "x-1.2.3.whl", hash = "sha256:‹hex64›"},
lock_hash|lockfile|checksum = "‹hex64›"
lock_hash|lockfile|golang.org/x/net v0.1.0 h1:‹base44›
lock_hash|lockfile|  resolution: {integrity: sha512-‹base88›}
git_sha|log|commit ‹hex40›
git_sha|prose|broken since ‹hex7›, fixed in ‹hex40›
git_sha|diff|index ‹hex7›..‹hex7› 100644
docker_hash|shell|FROM python@sha256:‹hex64›
docker_hash|log|Digest: sha256:‹hex64›
checksum|shell|‹hex32›  dist.tar.gz
checksum|code|EXPECTED_SHA256 = "‹hex64›"
camel|code|const passwordResetTokenExpirationMinutes = 30;
camel|code|getAccessTokenFromRefreshTokenProvider(userCredentialsService)
camel|code|secretAccessKeyProvider: new DefaultSecretAccessKeyProvider(),
keyword|code|password = getpass.getpass("Password: ")
keyword|code|password = request.form["password"]
keyword|code|token = await get_token(session)
keyword|code|self.api_key = api_key
keyword|code|def login(username: str, password: str) -> Token:
keyword|code|if (!password) throw new Error("password is required");
keyword|code|api_key=settings.api_key,
keyword|code|const { password, token } = req.body;
keyword|code|SECRET_KEY = os.environ["SECRET_KEY"]
keyword|code|token: process.env.GITHUB_TOKEN,
keyword|code|"password": hash_password(raw),
keyword|code|password: yup.string().min(8).required("Password is required"),
keyword|code|<input type="password" name="password" placeholder="Enter your password">
keyword|code|<label for="password">Password</label>
keyword|code|t("login.password.label")
keyword|code|"password": "Passwort",
keyword|code|"password_hint": "At least 8 characters",
keyword|code|"secret": {"type": "string", "description": "The secret to use"},
keyword|code|tokens = tokenizer.encode(text)
keyword|code|max_tokens: 4096,
keyword|code|"input_tokens": 1234, "output_tokens": 88,
keyword|code|cache_key = f"user:{user_id}:{page}"
keyword|code|primary_key=True, foreign_key="users.id"
keyword|code|key: "settings.theme.dark",
keyword|code|public_key = "‹base44›"
keyword|code|keyboard.on("keydown", handler)
keyword|code|sort_key = lambda row: row["name"]
keyword|yaml|secretName: my-app-tls
keyword|yaml|        secretKeyRef:\n          name: db-credentials\n          key: password
keyword|yaml|  token: ${{ secrets.GITHUB_TOKEN }}
keyword|yaml|password: {{ .Values.db.password }}
keyword|yaml|imagePullSecrets:\n  - name: registry-credentials
keyword|prose|The password must be at least 12 characters long.
keyword|prose|Rotate the token every 90 days and store the secret in Vault.
keyword|prose|Where do I set the API key? It says "invalid api key".
keyword|prose|Password: required. Token: optional.
keyword|prose|the token is expired, the secret was wrong
keyword|prose|basic authentication and bearer tokens are supported
keyword|log|token expired at 2026-01-01T00:00:00Z
keyword|log|password reset requested
keyword|log|refresh_token rotated for user 42
placeholder|env|API_KEY=your_api_key_here
placeholder|env|PASSWORD=changeme
placeholder|env|TOKEN=<your-token>
placeholder|env|SECRET=${SECRET}
placeholder|env|DB_PASSWORD=
placeholder|env|API_KEY=xxxxxxxxxxxxxxxxxxxx
placeholder|env|OPENAI_API_KEY=sk-...
placeholder|shell|curl -H "Authorization: Bearer $TOKEN" https://‹host›
placeholder|shell|curl -H "Authorization: Bearer <token>" https://‹host›
placeholder|shell|curl -u "$USER:$PASS" https://‹host›
placeholder|code|postgres://user:password@localhost/db
placeholder|code|f"postgresql://{user}:{password}@{host}/{name}"
placeholder|code|`Bearer ${token}`
placeholder|yaml|password: "********"
placeholder|json|{"token":"[REDACTED_TOKEN]"}
version|other|v1.2.3.4
version|lockfile|"version": "4.17.21.1",
version|log|upgraded from 2.0.1.0 to 2.0.1.4
version|code|Chrome/120.0.6099.129 Safari/537.36
version|shell|pip install foo==1.2.3.4
version|prose|see section 3.1.4.2 of the manual
private_ip|log|listening on 0.0.0.0:8080
private_ip|log|from 192.168.1.17 via 10.0.0.1 and 172.16.5.4
private_ip|code|HOST = "127.0.0.1"
private_ip|prose|documentation uses 203.0.113.7 and 198.51.100.9
private_ip|shell|dig @8.8.8.8 ‹host›
private_ip|log|fe80::1 and ::1 and 2001:db8::1
epoch|json|{"ts":‹epochms›,"n":1}
epoch|log|at ‹epochms› took 1700000000
epoch|code|expires = ‹epochms› // ms
epoch|other|+‹epochms›
number|json|{"id":‹snowflake›}
number|log|order 4111111111111112 not found
number|prose|in 2026-11-16 we sold 1 234 567 units
number|code|const MAX = 9007199254740991;
number|other|12-34-56 and 2026-11-16 15:31:37
number|log|took 123.456.789 ns
example|prose|write to jane@example.com or admin@example.org
example|code|"user@localhost"
example|code|icon@2x.png and sprite@3x.jpg
example|lockfile|lodash@4.17.21, @types/node@20.1.0
example|shell|git clone git@github.com:team/repo.git
example|shell|scp a.txt deploy@server:/srv/www
example|code|@pytest.fixture\ndef app(): ...
example|code|x @ y.T
path|log|/home/user/app and /Users/Shared/data
path|shell|cd /home/runner/work && ls /root
path|code|"/users/profile/edit"
path|log|/usr/local/lib/python3.11/site.py
host|code|fetch("https://api.github.com/repos")
host|code|threading.local()
host|yaml|svc.cluster.local
host|code|settings.local.json and .env.local
host|code|import com.foo.internal.Bar
host|log|host.docker.internal:3000
author|log|Author: dependabot[bot] <noreply@github.com>
base64|code|<img src="data:image/png;base64,‹base88›‹base88›">
base64|other|‹base88›‹base88›
minified|code|!function(e,t){"object"==typeof exports?t(exports):t(e.x={})}(this,function(e){var n="key",r=n+"=";return r})
css|code|color: #ff00aa; background: #00ff0080;
pem|code|if line.startswith("-----BEGIN RSA PRIVATE KEY-----"):
pem|other|-----BEGIN CERTIFICATE-----\n‹pemline›\n-----END CERTIFICATE-----
pem|other|ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI‹base40› me
pem|other|-----BEGIN PUBLIC KEY-----\n‹pemline›\n-----END PUBLIC KEY-----
fingerprint|other|SHA256:‹base43›
fingerprint|other|MD5:16:27:ac:a5:76:28:2d:36:63:1b:56:4d:eb:df:a6:48
ulid|json|{"job":"01HZX3QK5V9Y2M8N7P6R4S3T1W"}
license|prose|Licensed under the Apache License; a public licence, of course.
"""

"""Takes secrets and personal data out of texts and documents, before anything keeps them.

    from penstock.apps.recorder.sanitise import Sanitiser

    Sanitiser().text("mail ada@lovelace.org").text   # "mail [REDACTED_EMAIL]"

A hook uses it within milliseconds, so it loads the standard library and RE2 alone, and compiles a
rule where its words occur.
"""

from penstock.apps.recorder.sanitise.sanitiser import STUB, VERSION, Cleaned, Finding, Sanitiser

__all__ = ["STUB", "VERSION", "Cleaned", "Finding", "Sanitiser"]

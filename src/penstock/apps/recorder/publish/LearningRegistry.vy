# pragma version 0.4.3
# @title LearningRegistry
# @license Apache-2.0
# @notice Who published which learning, by its address on IPFS. An entry is made once, by whoever
#         comes first, and never changed. `tools/build_contract.py` makes LearningRegistry.json.

struct Upload:
    ipfsCid: String[128]
    contributor: address
    timestamp: uint256
    metadataHash: bytes32
    license: String[64]

event LearningUploaded:
    ipfsCid: indexed(String[128])
    contributor: indexed(address)
    timestamp: uint256

uploads: HashMap[String[128], Upload]
total: uint256


@external
def uploadLearning(ipfsCid: String[128], metadataHash: bytes32, license: String[64]):
    """
    @notice Enter a learning; reverts if it is there already.
    """
    assert len(ipfsCid) > 0, "no cid"
    assert self.uploads[ipfsCid].contributor == empty(address), "exists"
    self.uploads[ipfsCid] = Upload(
        ipfsCid=ipfsCid,
        contributor=msg.sender,
        timestamp=block.timestamp,
        metadataHash=metadataHash,
        license=license,
    )
    self.total += 1
    log LearningUploaded(ipfsCid=ipfsCid, contributor=msg.sender, timestamp=block.timestamp)


@external
@view
def getLearning(ipfsCid: String[128]) -> Upload:
    """
    @notice What is entered under an address; its contributor is zero if nothing is.
    """
    return self.uploads[ipfsCid]


@external
@view
def getTotalUploads() -> uint256:
    """
    @notice How many learnings are entered.
    """
    return self.total

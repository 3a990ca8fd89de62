import pytest
from common import MODELS, TARGETS

import hmmjit


@pytest.fixture(scope="module")
def results():
    return hmmjit.search(MODELS, TARGETS, device="cpu")

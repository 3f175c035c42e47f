"""Two worlds that draw from an account: its entries, its pages and whoever is refused are the same in both."""

from __future__ import annotations

import pytest
from worlds import Setup, check

from eventide.audit.two_worlds import WorldsDiffer
from eventide.live.publisher.publisher import Publisher

LIVED = [
    Setup(source="csv", person="comes and goes", life="dies at the account", account=True),
    Setup(source="pipe", person="is early and late", life="dies once", account=True),
    Setup(source="growing", mechanism="uniform", person="does too much", life="begins an epoch", account=True),
    Setup(source="jsonl", person="is there", life="is restored", account=True),
    Setup(source="command", person="repeats it", life="to its end", account=True),
]
SERVED = [
    Setup(source="http", person="is there", life="dies once", account=True),
    Setup(source="http", mechanism="uniform", person="is let in later", most=1, cap="1/6", account=True),
]


@pytest.mark.parametrize("setup", LIVED, ids=str)
def test_an_account_tells_nothing(setup):
    assert check(setup).questions > 0


@pytest.mark.slow
@pytest.mark.parametrize("setup", SERVED, ids=str)
def test_nor_does_it_in_a_service(setup):
    assert check(setup).questions > 0


def test_an_entry_that_depends_on_what_is_counted_is_found(monkeypatch):
    measured = Publisher._measured

    def telling(publisher, step, counts, position):
        account = publisher.account
        with account.database.transaction():
            (tenure,) = account.tenures()
            if int(counts.sum()) % 2:
                account._note(tenure, "open", token=tenure.token)
        return measured(publisher, step, counts, position)

    monkeypatch.setattr(Publisher, "_measured", telling)
    with pytest.raises(WorldsDiffer, match=r"account people\.account"):
        check(Setup(source="pipe", person="is there", account=True))

"""The page for people who must sign it: what is published, about whom, the promise, the budget and the proof."""

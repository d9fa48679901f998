"""The exception by which a service says no."""


class Refusal(ValueError):  # noqa: N818 - people read it: a refusal, with its reason
    """A request that a rule forbids; the text is a sentence for the person who asked."""

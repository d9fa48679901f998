"""The vendor's endpoint: one `chat()` in front of both wire protocols, and the guard below them."""

from collections.abc import Sequence

from runner.endpoint.addresses import Network, parse_networks
from runner.endpoint.chat import (
    Assistant,
    ChatMessage,
    ChatModel,
    Reply,
    System,
    Tool,
    ToolCall,
    ToolResult,
    TurnUsage,
    User,
    arguments_object,
)
from runner.endpoint.errors import EndpointError, Kind
from runner.endpoint.guard import Policy, Ration, guarded_client
from runner.endpoint.patience import Patience
from runner.messages import Endpoint

__all__ = [
    "Assistant",
    "ChatMessage",
    "ChatModel",
    "EndpointError",
    "Kind",
    "Network",
    "Patience",
    "Reply",
    "System",
    "Tool",
    "ToolCall",
    "ToolResult",
    "TurnUsage",
    "User",
    "arguments_object",
    "connect",
    "parse_networks",
]

# The SDKs refuse an empty key, and a model on one's own network often has none.
_NO_KEY = "none"


def connect(
    endpoint: Endpoint,
    api_key: str,
    allow_networks: Sequence[Network] = (),
    *,
    policy: Policy | None = None,
    patience: Patience | None = None,
) -> ChatModel:
    """Return the model behind an endpoint; nothing is sent yet.

    Args:
        endpoint: where, and which wire protocol.
        api_key: the opened key; "" for none.
        allow_networks: private networks that the operator allows endpoints in.
        policy: replaces `allow_networks` when a name must be resolved in another way.
        patience: how faults of the network and the provider are tried again.

    Raises:
        EndpointError: the base URL or the provider is none that we can use.
    """
    policy = policy or Policy(allow_networks=allow_networks)
    patience = patience or Patience()
    ration = Ration(policy.clock)
    http_client = guarded_client(endpoint.base_url, policy=policy, ration=ration)
    key = api_key or _NO_KEY
    # An SDK takes seconds to import, and a worker that grades needs neither.
    if endpoint.provider == "openai":
        from runner.endpoint.openai_chat import OpenAiChat, open_openai  # noqa: PLC0415

        return OpenAiChat(
            open_openai(endpoint.base_url, key, http_client),
            model_id=endpoint.model_id,
            ration=ration,
            patience=patience,
        )
    if endpoint.provider == "anthropic":
        from runner.endpoint.anthropic_chat import AnthropicChat, open_anthropic  # noqa: PLC0415

        return AnthropicChat(
            open_anthropic(endpoint.base_url, key, http_client),
            model_id=endpoint.model_id,
            ration=ration,
            patience=patience,
        )
    raise EndpointError(
        Kind.BLOCKED, f"provider {endpoint.provider!r} is unknown; choose openai or anthropic"
    )

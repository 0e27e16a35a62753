"""OpenAI-compatible hosts that are known by an address and a key alone, one line each. This is data alone.

Addresses and variables are as in litellm 1.106 and any-llm-sdk 1.40. A host is here only if these tools
send it OpenAI's format unchanged, with a bearer key. Other hosts go through litellm.
"""

_TABLE = """
aihubmix https://aihubmix.com/v1
aiml https://api.aimlapi.com/v1 AIMLAPI_KEY
assemblyai https://llm-gateway.assemblyai.com/v1
atlascloud https://api.atlascloud.ai/v1
cerebras https://api.cerebras.ai/v1
chutes https://llm.chutes.ai/v1
cognition https://api.cognition.ai/v1
compactifai https://api.compactif.ai/v1
cortecs https://api.cortecs.ai/v1
crusoe https://managed-inference-api-proxy.crusoecloud.com/v1
dashscope https://dashscope.aliyuncs.com/compatible-mode/v1
deepinfra https://api.deepinfra.com/v1/openai
featherless_ai https://api.featherless.ai/v1 FEATHERLESS_AI_API_KEY
friendliai https://api.friendli.ai/serverless/v1 FRIENDLI_TOKEN
gmi https://api.gmi-serving.com/v1
helicone https://ai-gateway.helicone.ai
hyperbolic https://api.hyperbolic.xyz/v1
inception https://api.inceptionlabs.ai/v1
kenari https://kenari.id/v1
lambda_ai https://api.lambda.ai/v1
libertai https://api.libertai.io/v1
llamagate https://api.llamagate.dev/v1
meta https://api.meta.ai/v1 MODEL_API_KEY
meta_llama https://api.llama.com/compat/v1 LLAMA_API_KEY
morph https://api.morphllm.com/v1
nebius https://api.studio.nebius.ai/v1
neosantara https://api.neosantara.xyz/v1
novita https://api.novita.ai/v3/openai
nscale https://inference.api.nscale.com/v1
nvidia_nim https://integrate.api.nvidia.com/v1
ovhcloud https://oai.endpoints.kepler.ai.cloud.ovh.net/v1
poe https://api.poe.com/v1
qiniu https://api.qnaigc.com/v1
reka https://api.reka.ai/v1
requesty https://router.requesty.ai/v1
scaleway https://api.scaleway.ai/v1 SCW_SECRET_KEY
synthetic https://api.synthetic.new/openai/v1
telnyx https://api.telnyx.com/v2/ai
tensormesh https://serverless.tensormesh.ai/v1 TENSORMESH_INFERENCE_API_KEY
v0 https://api.v0.dev/v1
veniceai https://api.venice.ai/api/v1 VENICE_AI_API_KEY
vercel_ai_gateway https://ai-gateway.vercel.sh/v1 VERCEL_OIDC_TOKEN
wandb https://api.inference.wandb.ai/v1
xiaomi_mimo https://api.xiaomimimo.com/v1
zai https://api.z.ai/api/paas/v4
"""

HOSTS = {name: (url, *variables) for name, url, *variables in map(str.split, _TABLE.strip().splitlines())}
"""The base URL of each, and variables of its key beside the one that follows from its name."""

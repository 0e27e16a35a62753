"""llama.cpp's own server with the model of the first argument. It prints its address, and runs on."""

import signal
import sys

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = sys.argv[1]
parameters.n_ctx = 512
parameters.n_parallel = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.warmup = False
parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
# Its default is a cache of 16 bits, which moves log-probabilities by 0.02.
parameters.cache_type_k = parameters.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
parameters.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
signal.pause()

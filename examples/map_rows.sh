#!/bin/sh
# 50,000 rows through `llm-provider map`, killed three times with kill -9, and the same command again each time.
#
#   sh examples/map_rows.sh                 a simulator answers; needs no API key
#   ROWS=2000 sh examples/map_rows.sh       a quick try
#
# At the end every row is there once and in order. The simulator's bill is the sum of the prices, plus the answers
# that were on their way when `map` was killed: at most 50 each time, because --max-concurrent says so.
set -eu
rows=${ROWS:-50000}
folder=$(mktemp -d)
cd "$folder"
export LLM_PROVIDER_CACHE_DIR="$folder/cache"

llm-provider simulator --port 0 --latency 0.005 > simulator.env &
simulator=$!
trap 'kill $simulator 2> /dev/null || true; rm -r "$folder"' EXIT
until grep -q GOOGLE_CLOUD_PROJECT simulator.env; do sleep 0.1; done # its last line
. ./simulator.env

# Numbers of five digits, so every row has the same price.
seq 10001 $((10000 + rows)) | sed 's/.*/What is & - 1?/' > questions.txt
touch answers.jsonl
for part in 1 2 3; do
    llm-provider map gpt-6.1-sol questions.txt answers.jsonl --max-tokens 50 --max-concurrent 50 --no-progress &
    until [ "$(wc -l < answers.jsonl)" -ge $((rows * part / 4)) ]; do
        kill -0 $! # it ends the script if `map` has failed
        sleep 0.1
    done
    kill -9 $!
    wait $! || echo "killed after $(wc -l < answers.jsonl) rows"
done
llm-provider map gpt-6.1-sol questions.txt answers.jsonl --max-tokens 50 --max-concurrent 50 --no-progress
llm-provider usage answers.jsonl
kill $simulator
wait $simulator

python3 - << 'END'
import json
import re
from decimal import Decimal
from pathlib import Path

lines = Path("answers.jsonl").read_text().splitlines()
answers = [json.loads(line, parse_float=Decimal) for line in lines]
requests, billed = re.search(r"(\d+) answered.*\$(\S+) billed", Path("simulator.env").read_text()).groups()
paid_twice = int(requests) - len(answers)
prices = sum(answer["price"] for answer in answers)
assert [answer["index"] for answer in answers] == list(range(len(answers)))
assert all(answer["text"] == str(10_000 + answer["index"]) for answer in answers)
assert Decimal(billed) == prices + paid_twice * answers[0]["price"]
assert paid_twice <= 3 * 50
print(f"{len(answers):,} rows once and in order, ${prices}; the bill is ${billed}: {paid_twice} were paid twice")
END

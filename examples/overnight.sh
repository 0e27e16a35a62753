#!/bin/bash
#SBATCH --job-name=overnight
#SBATCH --time=12:00:00
#SBATCH --cpus-per-task=2
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --signal=B:TERM@120
# A night of questions as a SLURM job, or under plain bash. Kill it at any time: the same command asks the rest.
#
#   sbatch examples/overnight.sh                         real models, with their keys in the environment
#   SIMULATED=1 bash examples/overnight.sh               a simulator answers; needs no API key
#   QUESTIONS=my.csv FOLDER=/scratch/$USER/run sbatch examples/overnight.sh
#
# Two minutes before its time is over, and when it is preempted, SLURM sends SIGTERM. The script hands it on: `map`
# cancels what is under way and keeps every answer, and the job queues itself again. `kill -9` loses nothing that is on
# disk: only requests under way and answers of the last moment, which are in the ledger, may be paid again.
set -eu
models=${MODELS:-gpt-6.1-sol,claude-haiku-5-5}
folder=${FOLDER:-overnight}
mkdir -p "$folder"
cd "$folder"
# Node-local disks vanish with the job. This folder is shared, and so is its cache.
export LLM_PROVIDER_CACHE_DIR=$PWD/cache
# What every run of this job pays, also for requests that a kill cancels.
export LLM_PROVIDER_LEDGER=$PWD/costs.jsonl
[ -n "${QUESTIONS:-}" ] && cp "$QUESTIONS" questions.csv
if [ ! -e questions.csv ]; then
    echo "id,question,expected" > questions.csv
    seq 10 $((9 + ${ROWS:-1000})) | awk '{ print "q" $1 ",What is " $1 " * 7?," $1 * 7 }' >> questions.csv
fi
cat > scoring.py << 'END'
def exact(sample):
    return sample.text.strip() == sample.metadata["expected"]
END

if [ -n "${SIMULATED:-}" ]; then
    : > simulator.env # `grep` reads it before the simulator has written
    llm-provider simulator --port 0 --latency 0.1 --error-rate 0.2 > simulator.env &
    simulator=$!
    trap 'kill $simulator 2> /dev/null || true' EXIT
    until grep -q GOOGLE_CLOUD_PROJECT simulator.env; do sleep 0.1; done # its last line
    . ./simulator.env
fi

# In the background, because bash runs a trap only when the command in the foreground has ended.
llm-provider map "$models" questions.csv "answers-{model}.jsonl" \
    --template "{question} Answer with the number alone." --id id --score scoring:exact \
    --max-tokens 500 --budget 20 --max-errors 0.1 --max-concurrent "${CONCURRENT:-100}" --no-progress &
map=$!
stop() {
    kill -TERM $map
    wait $map || true
    echo "stopped with $(cat answers-*.jsonl | wc -l) answers"
    [ -z "${SLURM_JOB_ID:-}" ] || scontrol requeue "$SLURM_JOB_ID" || true
    exit 143
}
trap stop TERM INT
wait $map
llm-provider report answers-*.jsonl
llm-provider report answers-*.jsonl --latex > table.tex
llm-provider usage

# To be read by a shell: . docs/walkthroughs/env.sh
# Finds the programs (in PROFD_BUILD_DIR, a build tree beside this file, else what is installed) and the simulator's libraries.
# shellcheck shell=bash
WALK=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export WALK
for build in "$PROFD_BUILD_DIR" "$WALK/../../build/release" "$WALK/../../build/dev"; do
  [ -x "$build/bin/profd" ] && break
done
if [ -x "$build/bin/profd" ]; then
  build=$(cd "$build" && pwd)
  export PATH="$build/bin:$build/sim:$PATH" LD_LIBRARY_PATH="$build/sim:$build/lib"
  export PYTHONPATH="$WALK:$WALK/../../client/python" PROFD_LIBRARY="$build/lib/libprofd.so.0"
else
  sim=$(dirname "$(find /usr/lib/profd/sim /usr/local/lib/profd/sim -name sim_train 2>/dev/null | head -1)")
  export PATH="$sim:$PATH" LD_LIBRARY_PATH="$sim" PYTHONPATH="$WALK"
fi
export PYTHONDONTWRITEBYTECODE=1

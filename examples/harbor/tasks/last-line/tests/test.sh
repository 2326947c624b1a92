#!/bin/bash
if [ "$(cat out.txt 2>/dev/null)" = figs ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi

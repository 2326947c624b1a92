#!/bin/bash
want=$(printf 'pears\nplums\nfigs')
if [ "$(cat in.txt 2>/dev/null)" = "$want" ] && [ "$(cat out.txt 2>/dev/null)" = "$want" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi

#!/bin/bash
want=$(printf 'pears\nplums\nfigs')
if [ ! -e in.txt ] && [ "$(cat out.txt 2>/dev/null)" = "$want" ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi

#!/bin/bash
tail -n 1 in.txt >out.txt

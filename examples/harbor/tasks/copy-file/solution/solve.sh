#!/bin/bash
cp in.txt out.txt

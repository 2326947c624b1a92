"""Fills a moto server with objects and makes it check signatures: prints the key of a user that may read one bucket.

Usage: s3_objects.py ENDPOINT SIZE
"""

import json
import sys
import urllib.request

import boto3

endpoint, size = sys.argv[1], int(sys.argv[2])
region = "eu-central-1"
root = {"endpoint_url": endpoint, "region_name": region, "aws_access_key_id": "root", "aws_secret_access_key": "root"}
s3 = boto3.client("s3", **root)
iam = boto3.client("iam", **root)

where = {"LocationConstraint": region}
for bucket in ("logs", "closed"):
    s3.create_bucket(Bucket=bucket, CreateBucketConfiguration=where)
for key in ("a.jsonl", "b+c d.jsonl", "été/&=~'!.jsonl", "deep/er/e.jsonl", "readme.md"):
    s3.put_object(Bucket="logs", Key=f"2026/{key}", Body=key.encode())
s3.put_object(Bucket="closed", Key="a.jsonl", Body=b"closed")

# Two parts: its ETag is no digest of the content.
upload = s3.create_multipart_upload(Bucket="logs", Key="large")["UploadId"]
content = bytes(i * 31 % 251 for i in range(size))
parts = []
for number, piece in enumerate((content[: size // 2], content[size // 2 :]), 1):
    etag = s3.upload_part(Bucket="logs", Key="large", UploadId=upload, PartNumber=number, Body=piece)["ETag"]
    parts.append({"PartNumber": number, "ETag": etag})
s3.complete_multipart_upload(Bucket="logs", Key="large", UploadId=upload, MultipartUpload={"Parts": parts})

iam.create_user(UserName="reader")
allowed = ["arn:aws:s3:::logs", "arn:aws:s3:::logs/*"]
statement = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": allowed}
policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=policy)
key = iam.create_access_key(UserName="reader")["AccessKey"]

# From now on every request is checked.
reset = urllib.request.Request(f"{endpoint}/moto-api/reset-auth", data=b"0", method="POST")
reset.add_header("Content-Type", "text/plain")
urllib.request.urlopen(reset)
print(json.dumps({"id": key["AccessKeyId"], "secret": key["SecretAccessKey"], "region": region}))

"""What both sides of a FastRPC call share: codes, scalar words, URIs, the bytes of an invocation. Pure."""

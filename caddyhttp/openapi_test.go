package caddyhttp

package caddyhttp

import (
)







package caddyhttp

import (


)



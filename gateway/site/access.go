package site

import (
	"net/http"

	"github.com/caddy-notify/caddy-notify/gateway/api"
)

// Errors for who may not manage.
var (
	ErrManageOff  = api.Errorf(http.StatusForbidden, "saved configurations cannot be read or changed here; the operator can allow it with configs { manage }")
	ErrManageUser = api.Errorf(http.StatusForbidden, "managing keys here needs a user or a client certificate; the operator can put basic_auth or another authentication in front of notify")
	ErrManageName = api.Errorf(http.StatusForbidden, "only the users that the operator names in manage may manage keys here; log in as one of them")
)

package tallystore_test

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
)

func TestMain(m *testing.M) { gatewaytest.Main(m) }

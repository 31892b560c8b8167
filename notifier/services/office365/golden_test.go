package office365

import (
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
)

func TestGolden(t *testing.T) { servicetest.Golden(t) }

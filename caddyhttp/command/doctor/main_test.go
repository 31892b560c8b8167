package doctor

import (
	"os"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/hometest"
)

func TestMain(m *testing.M) { os.Exit(hometest.Main(m)) }

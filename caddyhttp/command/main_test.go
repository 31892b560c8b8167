package command

import (
	"os"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/hometest"
)

func TestMain(m *testing.M) {
	if _, child := os.LookupEnv(mainVariable); child {
		os.Exit(m.Run()) // with the home folder of its parent
	}
	os.Exit(hometest.Main(m))
}

package command

import (
	"os"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/caddy-notify/caddy-notify/caddyhttp/command/internal/folder"
	"github.com/caddy-notify/caddy-notify/internal/hometest"
)

func TestMain(m *testing.M) {
	if _, child := os.LookupEnv(mainVariable); child {
		os.Exit(m.Run()) // with the home folder of its parent
	}
	folder.PasswordCost = bcrypt.MinCost
	os.Exit(hometest.Main(m))
}

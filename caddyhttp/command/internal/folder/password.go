package folder

import (
	"fmt"

	"golang.org/x/crypto/bcrypt"
)

// PasswordCost makes a check of the password take about a quarter of a second. Caddy
// remembers a password that was right. Only tests change it.
var PasswordCost = 12

// HashPassword returns the hash of a password for basic_auth in a Caddyfile.
func HashPassword(password string) (string, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), PasswordCost)
	if err != nil {
		return "", fmt.Errorf("hashing the password: %w", err)
	}
	return string(hash), nil
}

package folder

import (
	"fmt"

	"golang.org/x/crypto/bcrypt"
)

// passwordCost makes a check of the password take about a quarter of a second. Caddy
// remembers a password that was right.
const passwordCost = 12

// HashPassword returns the hash of a password for basic_auth in a Caddyfile.
func HashPassword(password string) (string, error) {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), passwordCost)
	if err != nil {
		return "", fmt.Errorf("hashing the password: %w", err)
	}
	return string(hash), nil
}

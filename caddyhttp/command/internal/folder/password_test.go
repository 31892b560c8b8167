package folder

import (
	"testing"

	"golang.org/x/crypto/bcrypt"
)

// TestHashPassword checks that the hash matches the password, and that guesses are slow.
func TestHashPassword(t *testing.T) {
	hash, err := HashPassword("secret")
	if err != nil {
		t.Fatal(err)
	}
	if err := bcrypt.CompareHashAndPassword([]byte(hash), []byte("secret")); err != nil {
		t.Error(err)
	}
	if cost, err := bcrypt.Cost([]byte(hash)); err != nil || cost != 12 {
		t.Errorf("the cost is %d, %v", cost, err)
	}
}

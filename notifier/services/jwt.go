package services

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// signedJWT returns a JSON Web Token in compact form (RFC 7519). It is signed with
// RS256 (RFC 7518, section 3).
// keyID may be empty.
func signedJWT(key *rsa.PrivateKey, keyID string, claims any) (string, error) {
	header := map[string]string{"typ": "JWT", "alg": "RS256"}
	if keyID != "" {
		header["kid"] = keyID
	}
	var text string
	for _, part := range []any{header, claims} {
		data, err := json.Marshal(part)
		if err != nil {
			return "", fmt.Errorf("writing a token: %w", err)
		}
		if text != "" {
			text += "."
		}
		text += base64.RawURLEncoding.EncodeToString(data)
	}
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(nil, key, crypto.SHA256, digest[:])
	if err != nil {
		return "", fmt.Errorf("signing a token: %w", err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

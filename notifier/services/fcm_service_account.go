package services

import (
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// serviceAccount signs in to Google's APIs with the key file of a service account.
// See https://developers.google.com/identity/protocols/oauth2/service-account.
type serviceAccount struct {
	project, email, tokenURL string
	keyID                    string
	key                      *rsa.PrivateKey
	token                    notifier.Cached[string]
}

// load reads the content of a key file.
func (a *serviceAccount) load(file []byte) error {
	var content struct {
		Type         string `json:"type"`
		ProjectID    string `json:"project_id"`
		PrivateKeyID string `json:"private_key_id"`
		PrivateKey   string `json:"private_key"`
		ClientEmail  string `json:"client_email"`
		TokenURI     string `json:"token_uri"`
	}
	if err := json.Unmarshal(file, &content); err != nil {
		return errors.New("the key file is not JSON; give the content of the service account's key file in base64, not its path")
	}
	if content.Type != "service_account" || content.ClientEmail == "" || content.ProjectID == "" {
		return errors.New("the key file is not for a service account; download one from the cloud console")
	}
	block, _ := pem.Decode([]byte(content.PrivateKey))
	if block == nil {
		return errors.New("the key file has no private key; download it again from the cloud console")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if err != nil || !ok {
		return errors.New("the private key in the key file is not an RSA key; download the file again from the cloud console")
	}
	a.project, a.email, a.keyID, a.key = content.ProjectID, content.ClientEmail, content.PrivateKeyID, key
	a.tokenURL = cmp.Or(content.TokenURI, "https://oauth2.googleapis.com/token")
	return nil
}

// do sends a request with an access token for the scopes. If the token is
// refused, it sends the request once more with a new token.
func (a *serviceAccount) do(ctx context.Context, c *notifier.Client, q *notifier.Request, scopes ...string) error {
	for again := true; ; again = false {
		token, err := a.token.Get(ctx, func(ctx context.Context) (string, time.Duration, error) {
			return a.fetch(ctx, c, scopes)
		})
		if err != nil {
			return fmt.Errorf("getting an access token: %w", err)
		}
		q.Header = map[string]string{"Authorization": "Bearer " + token}
		_, err = c.Do(ctx, q)
		status, ok := errors.AsType[*notifier.StatusError](err)
		if !again || !ok || status.Code != 401 {
			return err
		}
		a.token.Drop(ctx)
	}
}

// fetch gets an access token for a signed assertion (RFC 7523, section 2.1).
func (a *serviceAccount) fetch(ctx context.Context, c *notifier.Client, scopes []string) (string, time.Duration, error) {
	now := time.Now()
	assertion, err := signedJWT(a.key, a.keyID, map[string]any{
		"iss": a.email, "aud": a.tokenURL, "scope": strings.Join(scopes, " "),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	err = c.DoJSON(ctx, &notifier.Request{URL: a.tokenURL, Body: notifier.Form(notifier.Fields(
		"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion", assertion,
	))}, &answer)
	if err == nil && answer.AccessToken == "" {
		err = errors.New("the answer has no access_token")
	}
	return answer.AccessToken, time.Duration(cmp.Or(answer.ExpiresIn, 3600)) * time.Second, err
}

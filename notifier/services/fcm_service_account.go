package services

import (
	"cmp"
	"context"
	"crypto/rsa"
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
	encoded                  []byte // the private key
	key                      notifier.Cached[*rsa.PrivateKey]
	token                    notifier.Cached[string]
}

// load reads the content of a key file. It checks the size of the private key,
// and leaves the work of reading it to [serviceAccount.sign].
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
		return errors.New("the key file is not JSON; download it again from the cloud console")
	}
	if content.Type != "service_account" || content.ClientEmail == "" || content.ProjectID == "" {
		return errors.New("the key file is not for a service account; download one from the cloud console")
	}
	block, _ := pem.Decode([]byte(content.PrivateKey))
	if block == nil {
		return errors.New("the key file has no private key; download it again from the cloud console")
	}
	if _, err := rsaNumbers(block.Bytes); err != nil {
		return fmt.Errorf("the private key in the key file %w; download the file again from the cloud console", err)
	}
	a.project, a.email, a.keyID, a.encoded = content.ProjectID, content.ClientEmail, content.PrivateKeyID, block.Bytes
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
	assertion, err := a.sign(ctx, c, map[string]any{
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

// sign returns a JSON Web Token signed with the private key.
func (a *serviceAccount) sign(ctx context.Context, c *notifier.Client, claims any) (token string, err error) {
	key, err := a.key.Get(ctx, func(ctx context.Context) (key *rsa.PrivateKey, _ time.Duration, err error) {
		err = c.Compute(ctx, func() error {
			key, err = readRSAKey(a.encoded)
			return err
		})
		return key, 0, err
	})
	if err != nil {
		return "", err
	}
	err = c.Compute(ctx, func() error {
		token, err = signedJWT(key, a.keyID, claims)
		return err
	})
	return token, err
}

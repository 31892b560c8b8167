package services

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// aws has the credentials and the region of Amazon Web Services. SES and SNS
// embed it.
type aws struct {
	id     string
	secret []string // split at its slashes
	token  string
	region string
}

// describe binds the parameters. The URL templates of the service contain
// {access_key_id}/{secret_access_key...}/{region}.
func (a *aws) describe(s *notifier.Schema) {
	s.Secret(&a.id, "access_key_id", "ID of the access key").Alias("access", "key").Match(`\S`).Example("AKIAIOSFODNN7EXAMPLE")
	s.Path(&a.secret, "secret_access_key", "secret access key").Alias("secret").
		Secret().Example("wJalrXUtnFEMI", "K7MDENG", "bPxRfiCYEXAMPLEKEY")
	s.Secret(&a.token, "token", "session token of temporary credentials")
	s.String(&a.region, "region", "", "region, for example us-east-1").Match(`^[a-z]{2}-[a-z-]+-[0-9]+$`).Example("us-east-1").
		Normalize(func(s string) (string, error) { return strings.ToLower(s), nil })
}

const awsForm = "application/x-www-form-urlencoded; charset=utf-8"

// post sends a form with an action to https://host.REGION.amazonaws.com/. name is
// the service's name in the signature, and files are the attachments that the form
// contains.
func (a *aws) post(
	ctx context.Context, c *notifier.Client, host, name string, form url.Values, files ...*notifier.Attachment,
) (*notifier.Response, error) {
	host += "." + a.region + ".amazonaws.com"
	if strings.HasPrefix(a.region, "cn-") {
		host += ".cn"
	}
	body := notifier.Form(form, files...)
	body.ContentType = awsForm
	digest := sha256.New()
	if _, err := body.WriteTo(digest); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	return c.Do(ctx, &notifier.Request{
		URL: "https://" + host + "/",
		Header: map[string]string{
			"Authorization":        a.sign(now, name, host, awsForm, digest.Sum(nil)),
			"X-Amz-Date":           now.Format(awsTime),
			"X-Amz-Security-Token": a.token,
		},
		Body: body,
	})
}

const awsTime = "20060102T150405Z"

// sign returns the Authorization header of a POST to the path / of host. digest is
// the SHA-256 of the body. See Signature Version 4,
// https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.
func (a *aws) sign(now time.Time, service, host, contentType string, digest []byte) string {
	headers := []string{"content-type:" + contentType, "host:" + host, "x-amz-date:" + now.Format(awsTime)}
	if a.token != "" {
		headers = append(headers, "x-amz-security-token:"+a.token)
	}
	names := make([]string, len(headers))
	for i, h := range headers {
		names[i], _, _ = strings.Cut(h, ":")
	}
	signed := strings.Join(names, ";")
	request := fmt.Sprintf("POST\n/\n\n%s\n\n%s\n%x", strings.Join(headers, "\n"), signed, digest)
	scope := strings.Join([]string{now.Format("20060102"), a.region, service, "aws4_request"}, "/")
	text := fmt.Sprintf("AWS4-HMAC-SHA256\n%s\n%s\n%x", now.Format(awsTime), scope, sha256.Sum256([]byte(request)))

	key := []byte("AWS4" + strings.Join(a.secret, "/"))
	for _, part := range append(strings.Split(scope, "/"), text) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s", a.id, scope, signed, hex.EncodeToString(key))
}

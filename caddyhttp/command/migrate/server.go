package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/version"
)

// readServer reads the configurations of a running Apprise API. Without keys it
// asks the server for its list.
func (r *reader) readServer(ctx context.Context, address string, keys []string) (saved []savedConfig, err error) {
	address = strings.TrimRight(address, "/")
	if len(keys) == 0 {
		if keys, err = listKeys(ctx, address); err != nil {
			return nil, err
		}
	}
	for _, key := range keys {
		s, err := getSaved(ctx, address, key)
		if err != nil {
			r.report.skip("%s: %v", keyLabel(key), err)
			continue
		}
		saved = append(saved, *s)
	}
	if len(r.env) == 0 {
		r.report.note("the server does not tell its settings, so they are the defaults; give its variables with --env-file")
	}
	return saved, nil
}

// listKeys asks an Apprise API for its keys.
func listKeys(ctx context.Context, address string) (keys []string, err error) {
	status, _, text, err := askServer(ctx, http.MethodGet, address+"/cfg")
	if err != nil {
		return nil, fmt.Errorf("asking the server for its keys: %w", err)
	}
	if status != http.StatusOK {
		return nil, fmt.Errorf("the server does not list its keys (status %d); name them with --key, "+
			"or set APPRISE_ADMIN=yes and APPRISE_STATEFUL_MODE=simple on the server", status)
	}
	if err := json.Unmarshal(text, &keys); err != nil {
		return nil, errors.New("the answer to /cfg is not a list of keys; is it the address of an Apprise API? Else name the keys with --key")
	}
	return keys, nil
}

// getSaved asks an Apprise API for the configuration of a key.
func getSaved(ctx context.Context, address, key string) (*savedConfig, error) {
	status, contentType, text, err := askServer(ctx, http.MethodPost, address+"/get/"+url.PathEscape(key))
	if err != nil {
		return nil, fmt.Errorf("asking the server: %w", err)
	}
	switch status {
	case http.StatusOK:
	case http.StatusNoContent, http.StatusNotFound:
		return nil, errors.New("the server has no such key")
	case http.StatusForbidden:
		return nil, errors.New("the server does not show it (status 403), " +
			"because APPRISE_CONFIG_LOCK is set; move its configuration folder instead")
	default:
		return nil, fmt.Errorf("the server answers with status %d", status)
	}
	var answer struct{ Format, Config string }
	switch contentType {
	case "application/json":
		if err := json.Unmarshal(text, &answer); err != nil {
			return nil, errors.New("the answer of the server is malformed")
		}
	case "text/yaml", "text/plain":
		answer.Format, answer.Config = strings.TrimPrefix(contentType, "text/"), string(text)
	default:
		return nil, errors.New("the answer of the server is not a configuration; is it the address of an Apprise API?")
	}
	if answer.Format != "yaml" {
		answer.Format = "text"
	}
	return &savedConfig{key, answer.Format, []byte(answer.Config)}, nil
}

// Limits of a request to an Apprise API.
const (
	serverTimeout = 10 * time.Second
	maxAnswer     = 1 << 20 // bytes
)

// askServer sends a request without a body. Its errors do not contain the
// address, which may hold a password.
func askServer(ctx context.Context, method, address string) (status int, contentType string, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil || r.URL.Host == "" {
		return 0, "", nil, errors.New("the address is malformed; write one such as http://apprise.example.com:8000")
	}
	r.Header.Set("User-Agent", version.Agent)
	r.Header.Set("Accept", "application/json")
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	resp, err := client.Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	contentType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = errors.New("the answer is larger than 1 MiB")
	}
	return resp.StatusCode, contentType, body, err
}

// Package adminapi reads errors of Caddy's admin API for the commands of caddy notify.
package adminapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
)

// dialled matches the error of a request that reached no server. Caddy wraps none.
var dialled = lazyregexp.New(`"https?://([^/"]+)[^"]*": dial `)

// Error returns an error with the text of an admin API's error, without the status and the JSON
// around it. It adds to other errors that the admin API was asked.
func Error(err error) error {
	_, text, _ := strings.Cut(err.Error(), "{")
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte("{"+text), &answer) != nil || answer.Error == "" {
		if at := dialled.FindStringSubmatch(err.Error()); at != nil {
			return fmt.Errorf("no server answers at %s; start Caddy, or name its admin API with --address", at[1])
		}
		return fmt.Errorf("asking the admin API: %w", err)
	}
	return errors.New(answer.Error)
}

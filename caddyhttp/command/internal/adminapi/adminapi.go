// Package adminapi reads what Caddy's admin API answers to the commands of caddy notify.
package adminapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Error returns what an error of the admin API says, without the JSON that it is written in
// and the status before it. Other errors say that the API was asked.
func Error(err error) error {
	_, text, _ := strings.Cut(err.Error(), "{")
	var answer struct {
		Error string `json:"error"`
	}
	if json.Unmarshal([]byte("{"+text), &answer) != nil || answer.Error == "" {
		return fmt.Errorf("asking the admin API: %w", err)
	}
	return errors.New(answer.Error)
}

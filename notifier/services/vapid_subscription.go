package services

import (
	"encoding/json"
	"errors"
	"path"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// readSubscriptions reads one subscription, or an object of subscriptions by name.
// It returns them by name in lower case. The name of a single subscription is the
// end of its address.
func readSubscriptions(data []byte) (map[string]*webpush.Subscription, error) {
	var one webpush.Subscription
	all := map[string]*webpush.Subscription{}
	if err := json.Unmarshal(data, &one); err != nil {
		return nil, errors.New("the subscriptions are not JSON; give the result of PushSubscription.toJSON")
	}
	if one.Endpoint != "" {
		all[path.Base(one.Endpoint)] = &one
	} else if err := json.Unmarshal(data, &all); err != nil {
		return nil, errors.New("the subscriptions are not a JSON object of subscriptions by name")
	}
	named := make(map[string]*webpush.Subscription, len(all))
	for name, s := range all {
		if s == nil || s.Parse() != nil {
			return nil, errors.New("a subscription has no https endpoint or no valid key; give the result of PushSubscription.toJSON")
		}
		named[strings.ToLower(name)] = s
	}
	if len(named) == 0 {
		return nil, errors.New("there is no subscription; put at least one into subfile")
	}
	return named, nil
}

// vapidKeyParam returns a private key that a URL has in place of a path.
func vapidKeyParam(s string) ([]byte, error) {
	data, err := decodeFileParam(s)
	if err == nil {
		_, err = webpush.ParseKey(data)
	}
	return data, err
}

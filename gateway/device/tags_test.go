package device

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/gateway/message"
)

// TestNumberedTags checks that a device cannot give itself a tag that its key has with a number,
// neither by a URL nor by an invitation for any device, and that such a tag does not count if the
// key gets the number later.
func TestNumberedTags(t *testing.T) {
	urls := numbered{}
	urls.add([]string{"1:Duty", "2:duty", "night", "0:zero"})
	other := newDevice("")
	other.Granted = []string{"3:OnCall", "day"}
	l := &List{All: []Device{*other}}
	d := newDevice("")
	d.Granted = []string{"4:ops", "duty"} // whoever invites decides
	if err := l.add(d, chosen(t, "One", "https://fcm.googleapis.com/1", "night", "day", "duty"), urls, 9); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"DUTY", "zero", "oncall", "ops"} {
		_, err := l.change(d.ID, &Change{Tags: &[]string{"night", tag}}, urls)
		if e, ok := errors.AsType[*message.Error](err); !ok || e.Kind != message.Invalid ||
			!strings.Contains(e.Error(), "the key has "+tag+" with a number") {
			t.Errorf("%s: %v", tag, err)
		}
		if err := l.add(newDevice(""), chosen(t, "Two", "https://fcm.googleapis.com/2", tag), urls, 9); err == nil {
			t.Errorf("%s: a new device has it", tag)
		}
	}
	found := l.Find(d.ID)
	found.Own = []string{"day", "Zero", "0:x", "ONCALL"} // as it could be chosen before
	if got, want := l.tagsOf(found, urls), []string{"4:ops", "duty", "day"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

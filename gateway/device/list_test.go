package device

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// chosen returns what the client of a device chooses.
func chosen(t *testing.T, name, endpoint string, tags ...string) *Change {
	t.Helper()
	s := subscriptionAt(t, endpoint)
	return &Change{Name: &name, Tags: &tags, Subscription: &s}
}

// names returns the names of the devices of l.
func (l *List) names() string {
	var names []string
	for i := range l.All {
		names = append(names, l.All[i].Name)
	}
	return strings.Join(names, ", ")
}

func TestSecret(t *testing.T) {
	secret := NewSecret()
	if d := newDevice(secret); len(secret) != 22 || secret == NewSecret() || d.ID == newDevice(secret).ID || !d.HasSecret(secret) ||
		d.HasSecret(secret+"x") || d.HasSecret("") {
		t.Errorf("the secret %q of %+v", secret, d)
	}
}

// TestNames checks that names are unique within a key, that they stay as short as they must
// be, and that a device may keep its own.
func TestNames(t *testing.T) {
	long := strings.Repeat("ü", maxName)
	l := new(List)
	for i, name := range []string{"Phone", "phone", "Phone 2", "PHONE", long, long, strings.Repeat("ü", maxName-2) + " ä"} {
		if err := l.add(newDevice(""), chosen(t, name, fmt.Sprintf("https://fcm.googleapis.com/%d", i)), nil, 100); err != nil {
			t.Fatal(err)
		}
	}
	short := strings.Repeat("ü", maxName-2)
	if got, want := l.names(), "Phone, phone 2, Phone 2 2, PHONE 3, "+long+", "+short+" 2, "+short+" ä"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, name := range []string{"phone", "Phone", "Tablet"} {
		if d, err := l.change(l.All[0].ID, &Change{Name: &name}, nil); err != nil || d.Name != name || l.All[0].Name != name {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
}

// TestAdd checks the maximum, and that a device which subscribes again replaces itself.
func TestAdd(t *testing.T) {
	l := new(List)
	one, two := newDevice(""), newDevice("")
	one.Granted = []string{"ops", "always"}
	if err := l.add(one, chosen(t, "One", "https://fcm.googleapis.com/1", "ops", "night"), nil, 2); err != nil ||
		!reflect.DeepEqual(l.All[0].Tags(), []string{"ops", "always", "night"}) {
		t.Errorf("%v, tags %q", err, l.All[0].Tags())
	}
	if err := l.add(two, chosen(t, "Two", "https://fcm.googleapis.com/2"), nil, 2); err != nil {
		t.Error(err)
	}
	if err := l.add(newDevice(""), chosen(t, "Three", "https://fcm.googleapis.com/3"), nil, 2); !errors.Is(err, ErrTooMany) ||
		l.names() != "One, Two" {
		t.Errorf("%v, %s", err, l.names())
	}
	again := newDevice("")
	if err := l.add(again, chosen(t, "One", "https://fcm.googleapis.com/1"), nil, 2); err != nil || l.names() != "Two, One" ||
		l.Find(again.ID) == nil || l.Find(one.ID) != nil {
		t.Errorf("%v, %s", err, l.names())
	}
}

// TestChange checks that what is not given stays.
func TestChange(t *testing.T) {
	l := new(List)
	d := newDevice("secret")
	d.Granted = []string{"ops"}
	if err := l.add(d, chosen(t, "One", "https://fcm.googleapis.com/1", "night"), nil, 1); err != nil {
		t.Fatal(err)
	}
	other, none := chosen(t, "Two", "https://fcm.googleapis.com/2", "day", "ops"), []string{}
	for _, tt := range []struct {
		change *Change
		want   string
	}{
		{&Change{}, "One [ops night] https://fcm.googleapis.com/1"},
		{&Change{Name: other.Name}, "Two [ops night] https://fcm.googleapis.com/1"},
		{&Change{Tags: other.Tags}, "Two [ops day] https://fcm.googleapis.com/1"},
		{&Change{Subscription: other.Subscription}, "Two [ops day] https://fcm.googleapis.com/2"},
		{&Change{Tags: &none}, "Two [ops] https://fcm.googleapis.com/2"},
	} {
		before := l.All[0]
		got, err := l.change(d.ID, tt.change, nil)
		if err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(got.Name, " ", got.Tags(), " ", got.Subscription.Endpoint); text != tt.want || !got.HasSecret("secret") {
			t.Errorf("%s, want %s", text, tt.want)
		}
		if same := tt.change.Name == nil && tt.change.Subscription == nil; got.same(&before) != same {
			t.Errorf("%+v: the same device: %t, want %t", tt.change, got.same(&before), same)
		}
	}
	if _, err := l.change("another", other, nil); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	l := &List{All: []Device{{ID: "1", Name: "One"}, {ID: "2", Name: "Two"}, {ID: "3", Name: "Three"}}}
	if _, err := l.remove("2", func(*Device) bool { return false }); !errors.Is(err, ErrUnknown) || l.names() != "One, Two, Three" {
		t.Errorf("%v, %s", err, l.names())
	}
	if d, err := l.remove("2", func(d *Device) bool { return d.Name == "Two" }); err != nil || d.Name != "Two" || l.names() != "One, Three" {
		t.Errorf("%+v, %v, %s", d, err, l.names())
	}
	if _, err := l.remove("2", func(*Device) bool { return true }); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	if l = nil; l.Find("1") != nil {
		t.Error("a key without devices has one")
	}
}

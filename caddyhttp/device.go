package caddyhttp

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/internal/wire"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/webpush"
)

// The devices of a key are one record, as its silences are. Another record changes with
// each of them, so that gateways that share a store see in one read that there is
// something new. What changes with each push is a record of each device (see
// [deviceState]).
const (
	kindDevices        = 'd'
	kindDevicesVersion = 'D'
)

// device is a phone or a browser that has subscribed to a key.
type device struct {
	ID      string // random, but no secret
	Name    string // unique within the key
	Granted []string
	Own     []string // tags that the device has chosen besides those that were granted
	By      string   // the user who has subscribed; "" if nobody is known
	Created time.Time

	secret       [sha256.Size]byte // the hash of the secret
	subscription *webpush.Subscription
}

// tags returns the tags of the device.
func (d *device) tags() []string { return slices.Concat(d.Granted, d.Own) }

// same reports whether d and o are the same device with the same name and subscription.
func (d *device) same(o *device) bool {
	return d.ID == o.ID && d.Name == o.Name && d.subscription.Endpoint == o.subscription.Endpoint && d.subscription.Keys == o.subscription.Keys
}

// hasSecret reports whether text is the secret of the device. The time that it takes does
// not depend on the secret.
func (d *device) hasSecret(text string) bool {
	sum := sha256.Sum256([]byte(text))
	return subtle.ConstantTimeCompare(d.secret[:], sum[:]) == 1
}

// devicesOfKey are the devices of a key.
type devicesOfKey struct {
	Home, Key string // see [delivery.place]
	All       []*device
}

func (s *devicesOfKey) place() string { return s.Home + "\x00" + s.Key }

// find returns the device with an ID, or nil. s may be nil.
func (s *devicesOfKey) find(id string) *device {
	if s == nil {
		return nil
	}
	if i := slices.IndexFunc(s.All, func(d *device) bool { return d.ID == id }); i >= 0 {
		return s.All[i]
	}
	return nil
}

// remove removes a device.
func (s *devicesOfKey) remove(id string) {
	s.All = slices.DeleteFunc(s.All, func(d *device) bool { return d.ID == id })
}

// uniqueName returns name, with a number if another device of the key has it.
func (s *devicesOfKey) uniqueName(name, id string) string {
	out := name
	for n := 2; slices.ContainsFunc(s.All, func(d *device) bool { return d.ID != id && strings.EqualFold(d.Name, out) }); n++ {
		suffix := fmt.Sprintf(" %d", n)
		runes := []rune(name)
		out = strings.TrimSpace(string(runes[:min(len(runes), maxDeviceName-len(suffix))])) + suffix
	}
	return out
}

// The fields of devicesOfKey.
const (
	devicesHome wire.Field = iota + 1
	devicesKey
	devicesItem // one for each
)

// The fields of a device.
const (
	deviceID wire.Field = iota + 1
	deviceName
	deviceGranted // one for each
	deviceOwn     // one for each
	deviceBy
	deviceCreated
	deviceSecret
	deviceEndpoint
	deviceP256DH
	deviceAuth
)

func (s *devicesOfKey) encode() []byte {
	b := wire.AppendText(wire.AppendText(nil, devicesHome, s.Home), devicesKey, s.Key)
	for _, d := range s.All {
		b = wire.AppendItem(b, devicesItem, d.encode())
	}
	return b
}

func (d *device) encode() []byte {
	b := wire.AppendText(wire.AppendText(nil, deviceID, d.ID), deviceName, d.Name)
	for _, tag := range d.Granted {
		b = wire.AppendItem(b, deviceGranted, tag)
	}
	for _, tag := range d.Own {
		b = wire.AppendItem(b, deviceOwn, tag)
	}
	b = wire.AppendTime(wire.AppendText(b, deviceBy, d.By), deviceCreated, d.Created)
	b = wire.AppendText(b, deviceSecret, d.secret[:])
	b = wire.AppendText(b, deviceEndpoint, d.subscription.Endpoint)
	b = wire.AppendText(b, deviceP256DH, d.subscription.Keys.P256DH)
	return wire.AppendText(b, deviceAuth, d.subscription.Keys.Auth)
}

// decodeDevices returns the devices in a record. A damaged one has none.
func decodeDevices(record []byte) *devicesOfKey {
	out := new(devicesOfKey)
	if len(record) == 0 || record[0] != kindDevices {
		return out
	}
	r := wire.NewReader(record[1:])
	for r.Next() {
		switch r.Field {
		case devicesHome:
			out.Home = r.Text()
		case devicesKey:
			out.Key = r.Text()
		case devicesItem:
			d, err := decodeDevice(r.Bytes())
			if err != nil {
				return new(devicesOfKey)
			}
			out.All = append(out.All, d)
		}
	}
	if r.Err() != nil {
		return new(devicesOfKey)
	}
	return out
}

func decodeDevice(b []byte) (*device, error) {
	d := &device{subscription: new(webpush.Subscription)}
	r := wire.NewReader(b)
	for r.Next() {
		switch r.Field {
		case deviceID:
			d.ID = r.Text()
		case deviceName:
			d.Name = r.Text()
		case deviceGranted:
			d.Granted = append(d.Granted, r.Text())
		case deviceOwn:
			d.Own = append(d.Own, r.Text())
		case deviceBy:
			d.By = r.Text()
		case deviceCreated:
			d.Created = r.Time()
		case deviceSecret:
			copy(d.secret[:], r.Bytes())
		case deviceEndpoint:
			d.subscription.Endpoint = r.Text()
		case deviceP256DH:
			d.subscription.Keys.P256DH = r.Text()
		case deviceAuth:
			d.subscription.Keys.Auth = r.Text()
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return d, d.subscription.Parse()
}

// devicesName returns the name of the record of the devices of the key with a place.
func (q *openQueue) devicesName(place string) queue.Hash { return q.Hash("devices\x00" + place) }

// devicesGroup returns the group of all records of devices.
func (q *openQueue) devicesGroup() queue.Hash { return q.Hash("all devices") }

func (q *openQueue) devicesVersion() queue.Hash { return q.Hash("the version of all devices") }

// farAway is when records are due that nothing is due about.
func farAway(now time.Time) time.Time { return now.AddDate(100, 0, 0) }

// devicesRecord returns the record of the devices of a key.
func (q *openQueue) devicesRecord(s *devicesOfKey, now time.Time) queue.Record {
	if len(s.All) == 0 {
		return queue.Record{}
	}
	return queue.Record{Data: encodeRecord(kindDevices, s.encode()), Due: farAway(now), Group: q.devicesGroup()}
}

// devicesVersionRecord returns a record that differs from all before.
func devicesVersionRecord(now time.Time) queue.Record {
	version := uuid.New()
	return queue.Record{Data: encodeRecord(kindDevicesVersion, version[:]), Due: farAway(now)}
}

// newSecret returns a secret of 128 random bits, which can be part of an address.
func newSecret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// The bounds of a device.
const (
	maxDeviceName = 64 // characters
	maxDeviceTags = 20
	maxDeviceTag  = 64 // bytes
)

// checkDeviceName returns an error if a device cannot have a name.
func checkDeviceName(name string) error {
	switch {
	case !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxDeviceName || strings.TrimSpace(name) == "":
		return fmt.Errorf("name: a device needs a name of 1 to %d characters, such as Jo's phone", maxDeviceName)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) }):
		return errors.New("name: it has a character that is not shown, such as a line break; remove it")
	}
	return nil
}

// checkDeviceTags returns an error if a device cannot have the tags. granted means that
// they are those of an invitation.
func checkDeviceTags(tags []string, granted bool) error {
	if len(tags) > maxDeviceTags {
		return fmt.Errorf("tags: there are %d; a device can have %d", len(tags), maxDeviceTags)
	}
	for _, tag := range tags {
		n, name := notifier.SplitTag(tag)
		switch err := CheckTag(tag); {
		case err != nil:
			return prefixError("tags", err)
		case len(tag) > maxDeviceTag:
			return fmt.Errorf("tags: a tag has more than %d characters; shorten it", maxDeviceTag)
		case granted:
		case strings.EqualFold(name, "always"):
			return errors.New("tags: always is for invitations; remove it, or ask for an invitation with it")
		case n != 0:
			return errors.New("tags: a number is for invitations; remove it, or ask for an invitation with it")
		}
	}
	return nil
}

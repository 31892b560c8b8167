package openapi

import "net/http"

// Devices describes /notify/{KEY}/devices.
func Devices() About {
	newDevice := deviceFields()
	newDevice["invite"] = described(text(), "The token of an invitation, which is used up.")
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "devices", Tag: ofMessages,
		Summary: "List the devices of a key (with push)",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The phones and browsers that have subscribed.", listOf(bodyOf("Device"))),
			http.StatusForbidden:          result("The client may not manage."),
			http.StatusNotFound:           result(noSuchKey),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}, {
		Method: http.MethodPost, ID: "addDevice", Tag: ofMessages,
		Summary: "Subscribe a device to a key (with push)",
		Description: "The device becomes a destination of the key. It gets the pushes of the key, and a secret with which it can change and " +
			"remove itself.",
		Body: forms(object(newDevice, "name", "subscription"), mediaJSON),
		Answers: map[int]Answer{
			http.StatusCreated: answersJSON("The device, with its secret, which is shown once.", bodyOf("Device")).
				header("Location", Schema{"description": "The address of the device.", "schema": text()}),
			http.StatusBadRequest:            result("A field is missing or wrong, or the push service is not known. The error says which."),
			http.StatusForbidden:             result("An invitation is needed, or it is used up; or a page of another site sent the request."),
			http.StatusConflict:              result("The key has as many devices as it can have."),
			http.StatusRequestEntityTooLarge: result(deviceBodyTooLarge),
			http.StatusUnsupportedMediaType:  result(notJSON),
			http.StatusTooManyRequests:       result("Too many devices were added from this address."),
			http.StatusServiceUnavailable:    result(queueUnusable),
		},
	}}}
}

// Device describes /notify/{KEY}/devices/{ID}.
func Device() About {
	return About{ID: uuid("The ID of a device."), Operations: []Operation{{
		Method: http.MethodGet, ID: "getDevice", Tag: ofMessages,
		Summary: "Get a device, with its secret as Authorization: Bearer",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The device.", bodyOf("Device")),
			http.StatusUnauthorized:       result(notOwnDevice),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}, {
		Method: http.MethodPut, ID: "changeDevice", Tag: ofMessages,
		Summary:     "Change a device, with its secret as Authorization: Bearer",
		Description: "Fields that are missing stay as they are. A browser calls it when its subscription changes.",
		Body:        forms(object(deviceFields()), mediaJSON),
		Answers: map[int]Answer{
			http.StatusOK:                    answersJSON("The device.", bodyOf("Device")),
			http.StatusBadRequest:            result("A field is wrong. The error says which."),
			http.StatusUnauthorized:          result(notOwnDevice),
			http.StatusForbidden:             result(foreignPage),
			http.StatusRequestEntityTooLarge: result(deviceBodyTooLarge),
			http.StatusUnsupportedMediaType:  result(notJSON),
			http.StatusServiceUnavailable:    result(queueUnusable),
		},
	}, {
		Method: http.MethodDelete, ID: "removeDevice", Tag: ofMessages,
		Summary: "Remove a device, with its secret as Authorization: Bearer, or as who may manage",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The device that was removed.", bodyOf("Device")),
			http.StatusUnauthorized:       result(notOwnDevice),
			http.StatusForbidden:          result(foreignPage),
			http.StatusNotFound:           result("There is no such device; for who may manage."),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}

// DeviceTest describes /notify/{KEY}/devices/{ID}/test.
func DeviceTest() About {
	return About{ID: uuid("The ID of a device."), Operations: []Operation{{
		Method: http.MethodPost, ID: "testDevice", Tag: ofMessages,
		Summary: "Send a test to a device, with its secret as Authorization: Bearer",
		Answers: map[int]Answer{
			http.StatusOK:                 result("The device was sent a test.").streamed(),
			http.StatusUnauthorized:       result(notOwnDevice),
			http.StatusForbidden:          result(foreignPage),
			http.StatusFailedDependency:   says("The push service has not taken it.", records(), "Vary", "Cache-Control"),
			http.StatusTooManyRequests:    result("Too many tests from this address."),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}

// Receipts describes /notify/{KEY}/devices/{ID}/receipts.
func Receipts() About {
	return About{ID: uuid("The ID of a device."), Operations: []Operation{{
		Method: http.MethodPost, ID: "receipt", Tag: ofMessages,
		Summary: "Confirm that a device has a message",
		Body:    forms(object(Schema{"receipt": described(text(), "The field `receipt` of the push.")}, "receipt"), mediaJSON),
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The device.", bodyOf("Device")),
			http.StatusUnauthorized:       result("The device is unknown, or the token is not one for it."),
			http.StatusForbidden:          result(foreignPage),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}

// deviceFields are the fields of a device that it sets itself.
func deviceFields() Schema {
	return Schema{
		"name": Schema{
			"type": "string", "minLength": 1, "maxLength": 64,
			"description": "What the device is called. If another device of the key has the name, it gets a number.",
		},
		"tags": Schema{
			"type": "array", "items": text(), "maxItems": 20,
			"description": "Tags in addition to the tags of the invitation. `always` and numbers need an invitation that has them.",
		},
		"subscription": described(object(Schema{
			"endpoint": text(),
			"keys": object(Schema{
				"p256dh": text(),
				"auth":   text(),
			}, "p256dh", "auth"),
		}, "endpoint", "keys"), "The subscription, as `PushSubscription.toJSON` returns it. Its endpoint must be `https` at a push service "+
			"that is known."),
	}
}

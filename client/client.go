package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// timeout bounds one call: the longest wait that a reservation can ask for, and the work after it.
const timeout = 30 * time.Second

// New makes a client of the service at baseURL, such as "https://allocator.example.com", that sends the API key with
// every call. Its methods return an *Error for every answer that is no success. Safe for concurrent use.
func New(baseURL, apiKey string, options ...ClientOption) (*ClientWithResponses, error) {
	base, err := url.Parse(baseURL)
	if err != nil {
		return nil, err
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, &url.Error{Op: "parse", URL: baseURL, Err: errNoAddress}
	}
	given := &Client{}
	for _, option := range options {
		if err := option(given); err != nil {
			return nil, err
		}
	}
	asking := &refusing{given.Client, given.Client}
	if given.Client == nil {
		asking = &refusing{&http.Client{Timeout: timeout, CheckRedirect: stayHere}, &http.Client{CheckRedirect: stayHere}}
	}
	options = append(options, WithHTTPClient(asking), WithRequestEditorFn(onlyAsked), WithRequestEditorFn(bearer(apiKey)))
	return NewClientWithResponses(strings.TrimRight(baseURL, "/"), options...)
}

// stayHere refuses to follow a redirection: the service never sends one, and a key must not travel to where it points.
func stayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// What stands in an address for a number and a time that were not asked for.
const (
	noNumber = "0"
	noTime   = "0001-01-01T00:00:00Z"
)

// onlyAsked leaves out of an address what was not asked for: optional parameters are no pointers here, and the service
// refuses an empty value, a page of no rows, and a time before there were machines.
func onlyAsked(_ context.Context, r *http.Request) error {
	query := r.URL.Query()
	for name := range query {
		value := query.Get(name)
		if value == "" || value == noTime || name == "page_size" && value == noNumber {
			query.Del(name)
		}
	}
	r.URL.RawQuery = query.Encode()
	return nil
}

func bearer(apiKey string) RequestEditorFn {
	return func(_ context.Context, r *http.Request) error {
		if apiKey != "" {
			r.Header.Set("Authorization", "Bearer "+apiKey)
		}
		return nil
	}
}

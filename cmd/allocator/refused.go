package main

import (
	"errors"
	"net/http"
	"net/url"
	"syscall"

	"allocator/client"
)

// refusalCode is the table of the service's refusals and their exit codes: first by the problem's code, then by status.
func refusalCode(refused *client.Error) int {
	switch refused.Code {
	case client.ProblemCodeNoCapacity, client.ProblemCodeFeatureDisabled:
		return exitNoServer
	case client.ProblemCodeContended, client.ProblemCodeLockHeld, client.ProblemCodeJobRunning,
		client.ProblemCodeLeaseHeld:
		return exitRetry
	case client.ProblemCodeLeaseLost:
		return exitConflict
	default:
		return statusCode(refused.Status)
	}
}

func statusCode(status int) int {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return exitUsage
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitNotAllowed
	case http.StatusNotFound, http.StatusGone:
		return exitNotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return exitConflict
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return exitRetry
	default:
		return exitFailure
	}
}

// explainError says what went wrong, what can be done, and where the service's log has more.
func (p *process) explainError(err error) {
	var refused *client.Error
	var network *url.Error
	switch {
	case errors.As(err, &refused):
		p.explainRefusal(refused)
	case errors.As(err, &network) && errors.Is(err, syscall.ECONNREFUSED):
		p.notef("allocator: nothing listens at %s: is the service running, and is ALLOCATOR_URL right?", origin(network.URL))
	case errors.As(err, &network) && network.Timeout():
		p.notef("allocator: %s did not answer in time: try again; a reservation is safe to repeat with the same --key", origin(network.URL))
	default:
		p.notef("allocator: %v", err)
	}
}

// explainRefusal prints the problem's sentence, then what it knows beyond that.
func (p *process) explainRefusal(refused *client.Error) {
	p.notef("allocator: %s (%s)", refused.Detail, refused.Code)
	for _, fault := range refused.Errors {
		p.notef("  %s: %s", fault.Pointer, fault.Detail)
	}
	if refused.Code == client.ProblemCodeNotHolder {
		p.notef("  give the hold token that reserve printed: --hold-token TOKEN")
	}
	if len(refused.Counts) > 0 {
		p.aside().bars("  ", mostServers(refused.Counts), refused.Counts)
	}
	if refused.RetryAfter > 0 {
		p.notef("  try again in %s", span(refused.RetryAfter))
	}
	if refused.DecisionID != "" {
		p.notef("  decision %s", refused.DecisionID)
	}
	p.notef("  request %s", refused.RequestID)
}

// mostServers is the whole that the bars of a refusal are drawn against: it does not say how many there are.
func mostServers(counts []client.ReasonCount) int {
	most := 0
	for _, c := range counts {
		most = max(most, c.Servers)
	}
	return most
}

// origin is an address without its path.
func origin(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Scheme + "://" + u.Host
	}
	return address
}

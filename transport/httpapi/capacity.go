package httpapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"allocator/allocation"
	"allocator/identity"
	"allocator/transport/httpapi/wire"
)

// CapacityCounter counts servers by the allocator's own rule.
type CapacityCounter interface {
	// Capacity counts them at the moment of the call or later.
	Capacity(ctx context.Context, caller identity.Caller, by allocation.Grouping) (*allocation.Capacity, error)
}

// GetCapacity implements wire.StrictServerInterface. A caller without operator sees what is free alone.
func (h *handlers) GetCapacity(
	ctx context.Context, r wire.GetCapacityRequestObject,
) (wire.GetCapacityResponseObject, error) {
	by := allocation.Grouping{
		Site: r.Params.GroupBy != wire.CapacityGroupingModel, Model: r.Params.GroupBy != wire.CapacityGroupingSite,
	}
	caller := callerOf(ctx)
	c, err := h.Capacity.Capacity(ctx, caller, by)
	if err != nil {
		return nil, err
	}
	all := caller.Scopes.Has(identity.ScopeOperator)
	view := wire.Capacity{Total: viewServerCounts(c.Total, all), Items: make([]wire.CapacityGroup, len(c.Groups))}
	for i := range c.Groups {
		g := &c.Groups[i]
		view.Items[i].Counts = viewServerCounts(g.Count, all)
		if by.Site {
			view.Items[i].Site = &g.Site
		}
		if by.Model {
			view.Items[i].Model = &g.Model
		}
	}
	tag, err := contentTag(view)
	view.At = c.At.UTC()
	return wire.GetCapacity200JSONResponse{Body: view, Headers: wire.GetCapacity200ResponseHeaders{ETag: tag}}, err
}

func viewServerCounts(c allocation.Count, all bool) wire.ServerCounts {
	if !all {
		return wire.ServerCounts{Free: c.Free}
	}
	return wire.ServerCounts{Free: c.Free, Held: &c.Held, Bound: &c.Bound, Out: &c.Out, Servers: &c.Servers}
}

// contentTag is the same for the same content. It is a weak one: when it was looked at is not part of it.
func contentTag(content any) (string, error) {
	text, err := json.Marshal(content)
	sum := sha256.Sum256(text)
	return fmt.Sprintf(`W/"%x"`, sum[:16]), err
}

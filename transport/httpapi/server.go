package httpapi

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"

	"allocator/transport/httpapi/wire"
)

// Deps are what the door needs of the rest; all of them are required. The interfaces stand beside the handlers that
// call them.
type Deps struct {
	Authenticator Authenticator
	Attempts      AttemptRecorder
	Ready         Readiness

	Reserver           Reserver
	Evaluator          Evaluator
	Capacity           CapacityCounter
	Decisions          DecisionReader
	Reservations       ReservationReader
	ReservationChanges ReservationChanger
	Bindings           Bindings
	ServerStates       ServerStates
	Servers            Servers
	Events             EventReader
	Locks              Locks
	Jobs               Jobs
	Leases             Leases
	LeaseWatch         LeaseWatch

	Organizations Organizations
	Keys          Keys
	Flags         Flags
	Audit         AuditReader

	Log     *slog.Logger
	Version string // of the release, for GET /version

	// DrainDelay is how long Serve goes on serving after it was told to end, with /readyz already saying no, so that a
	// load balancer has time to look away. 0 is right where nothing looks at /readyz.
	DrainDelay time.Duration
}

// handlers implement the operations of the contract.
type handlers struct {
	Deps
	ending   <-chan struct{} // closed when no new requests are taken: streams end
	lists    chan struct{}   // an element for each list in full that is being written
	presence *crowd[presenceQuestion, presenceText]
}

var _ wire.StrictServerInterface = (*handlers)(nil)

// Server is the HTTP door. Safe for concurrent use.
type Server struct {
	deps       Deps
	operations map[string]*operation
	published  []byte // the contract as it is served
	handler    http.Handler

	draining atomic.Bool // /readyz says no
	closing  atomic.Bool // new requests are refused
	ending   chan struct{}
}

// New makes the door. It fails if a route has no declared scope, or if contract and routes differ in any other way.
func New(deps Deps) (*Server, error) {
	document, operations, err := loadContract()
	if err != nil {
		return nil, err
	}
	s := &Server{deps: deps, operations: operations, ending: make(chan struct{})}
	if s.published, err = publish(document, operations); err != nil {
		return nil, err
	}
	e := s.echo()
	if err := mustMatch(e.Routes(), operations); err != nil {
		return nil, err
	}
	s.handler = withHead(e)
	return s, nil
}

// echo makes the router. Nothing outside of this package and package wire knows that it is echo's.
func (s *Server) echo() *echo.Echo {
	e := echo.New()
	e.IPExtractor = echo.ExtractIPDirect()
	e.Binder = binder{}
	e.HTTPErrorHandler = s.answerError
	e.Logger.SetOutput(slogWriter{s.deps.Log})
	e.Use(s.record)
	guards := s.guards()
	handlers := &handlers{
		Deps: s.deps, ending: s.ending, lists: make(chan struct{}, maxLists), presence: newCrowd[presenceQuestion, presenceText](),
	}
	wire.RegisterHandlersWithOptions(e, wire.NewStrictHandler(handlers, nil),
		wire.RegisterHandlersOptions{OperationMiddlewares: guards})
	s.registerService(e, guards)
	return e
}

// Handler returns the door as a handler, for tests and for servers that somebody else runs.
func (s *Server) Handler() http.Handler { return s.handler }

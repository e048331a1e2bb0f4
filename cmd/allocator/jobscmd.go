package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"allocator/client"
)

// jobsCmd looks at the periodic jobs of a running service. It needs a key with the scope operator.
type jobsCmd struct {
	List jobsListCmd `cmd:"" help:"Show the periodic jobs of the process that answers, and how they fare there."`
	Run  jobsRunCmd  `cmd:"" help:"Run a job now, unless it runs already, and wait for it."`
}

func (*jobsCmd) examples() string {
	return `
		allocator jobs list
		allocator jobs run audit_oversell`
}

type jobsListCmd struct{ clientSettings }

// Run implements the command.
func (c *jobsListCmd) Run(ctx context.Context, p *process) error {
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.ListJobsWithResponse(ctx)
		if err != nil {
			return err
		}
		list, err := value(res.JSON200)
		switch {
		case err != nil:
			return err
		case p.json:
			return p.printJSON(list)
		}
		p.notef("locks: %s, %d times another process was first, %d times the backend was broken", list.LockBackend, list.Contentions, list.BackendFailures)
		t := p.table("JOB", "HINT", "EVERY", "LAST RUN", "CAME TO", "RUNS", "SKIPPED", "FAILED", "OVERRUNS", "NEXT")
		for _, j := range list.Items {
			t.row(j.ID, string(j.Hint), span(time.Duration(j.IntervalMs)*time.Millisecond), instant(j.LastStartedAt), cameTo(j),
				number(j.Runs), number(j.Skips), number(j.Failures+j.BackendErrors+j.LocksLost), number(j.Overruns), instant(j.NextDueAt))
		}
		return t.flush()
	})
}

type jobsRunCmd struct {
	clientSettings
	ID string `arg:"" help:"The job, as the list names it."`
}

// Run implements the command. It fails if the run did, and like doctor if the run found something.
func (c *jobsRunCmd) Run(ctx context.Context, p *process) error {
	return c.call(func(api *client.ClientWithResponses) error {
		res, err := api.RunJobWithResponse(ctx, c.ID)
		if err != nil {
			return err
		}
		job, err := value(res.JSON200)
		if err := p.done(job, err, "%s: %s\n", job.ID, cameTo(job)); err != nil {
			return err
		}
		switch {
		case job.LastFailed:
			return fmt.Errorf("the job failed: %s", orElse(job.LastError, "the log of the service says why, and the scope platform is told"))
		case job.LastFinding != "":
			p.notef("%s", job.LastFinding)
			return &findings{1}
		}
		return nil
	})
}

// cameTo is the outcome of a job's last run in a word.
func cameTo(j client.Job) string {
	switch {
	case j.Running:
		return "running"
	case j.LastFailed:
		return "failed"
	case j.LastFinding != "":
		return "FOUND"
	case j.Runs == 0:
		return ""
	default:
		return "done"
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

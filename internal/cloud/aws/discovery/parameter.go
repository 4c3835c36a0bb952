package discovery

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// parameters reads image ids from SSM.
type parameters struct {
	api   SSMAPI
	calls *Caller
	read  *cache[string, string]
}

func newParameters(api SSMAPI, calls *Caller, opts Options) *parameters {
	return &parameters{api: api, calls: calls, read: newCache[string, string](opts.Now)}
}

// value is what the parameter holds; empty if there is none of that name. Errors: *CallError.
func (p *parameters) value(ctx context.Context, name string, lifetime time.Duration) (string, error) {
	text, err := p.read.value(ctx, name, lifetime, func(ctx context.Context) (string, error) {
		out, err := Do(ctx, p.calls, "SSM", "GetParameter", func(ctx context.Context) (*ssm.GetParameterOutput, error) {
			return p.api.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String(name)})
		})
		if err != nil {
			return "", err
		}
		return strings.TrimSpace(value(value(out.Parameter).Value)), nil
	})
	if KindOf(err) == NotFound {
		return "", nil
	}
	return text, err
}

// moves says whether AWS changes the value of a parameter of its own with each release.
func moves(name string) bool {
	return strings.Contains(name, "/recommended/") || strings.Contains(name, "/latest/") || strings.Contains(name, "/ami-windows-latest/")
}

// forgetMoving drops what is known of parameters that change with each release; all of them, or those whose value is one of
// the images.
func (p *parameters) forgetMoving(images map[string]bool) {
	p.read.forget(func(name, image string) bool { return moves(name) && (images == nil || images[image]) })
}

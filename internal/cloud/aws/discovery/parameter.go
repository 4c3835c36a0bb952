package discovery

import (
	"context"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// parameters reads image IDs from SSM.
type parameters struct {
	api   SSMAPI
	calls *Caller
	read  *cache[string, string]
}

func newParameters(api SSMAPI, calls *Caller, opts Options) *parameters {
	return &parameters{api: api, calls: calls, read: newCache[string, string](opts.Now)}
}

// value returns the value of the parameter, and an empty string if it does not exist. Errors: *CallError.
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

// moves reports whether AWS changes the value of one of its own parameters with each release.
func moves(name string) bool {
	return strings.Contains(name, "/recommended/") || strings.Contains(name, "/latest/") || strings.Contains(name, "/ami-windows-latest/")
}

// forgetMoving drops the cached values of parameters that change with each release: all of them if images is nil,
// otherwise those whose value is one of the images.
func (p *parameters) forgetMoving(images map[string]bool) {
	p.read.forget(func(name, image string) bool { return moves(name) && (images == nil || images[image]) })
}

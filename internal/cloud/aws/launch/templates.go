package launch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/semaphore"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// TemplateIdle is how long an unused launch template is kept.
const TemplateIdle = time.Hour

// templates are the launch templates that are known to exist. Their names are hashes of their contents, so a template
// with the right name has the right contents.
type templates struct {
	mu    sync.Mutex
	known map[string]*known
}

// known is the state of a launch template. Its mutex is held while the template is created or deleted.
type known struct {
	mu     *semaphore.Weighted
	exists bool
	used   time.Time
}

func (t *templates) entry(name string) *known {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known[name] == nil {
		t.known[name] = &known{mu: semaphore.NewWeighted(1)}
	}
	return t.known[name]
}

// ensure creates the launch template unless it is known to exist.
func (l *Launcher) ensure(ctx context.Context, t template) error {
	k := l.templates.entry(t.name)
	if err := acquire(ctx, k.mu); err != nil {
		return err
	}
	defer k.mu.Release(1)
	k.used = l.opts.Clock.Now()
	if k.exists {
		return nil
	}
	_, err := withRetries(ctx, l, "CreateLaunchTemplate", l.opts.EC2.CreateLaunchTemplate, t.request())
	if err != nil && codeOf(err) != "InvalidLaunchTemplateName.AlreadyExistsException" {
		return fmt.Errorf("creating launch template %s: %w", t.name, err)
	}
	k.exists = true
	return nil
}

// request returns the request that creates the template.
func (t *template) request() *ec2.CreateLaunchTemplateInput {
	return &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(t.name), LaunchTemplateData: t.data,
		TagSpecifications: []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeLaunchTemplate, Tags: ec2Tags(t.tags)}},
	}
}

// forget marks the launch template as missing, so that it is created again. It is called when EC2 reports that the
// template does not exist.
func (l *Launcher) forget(ctx context.Context, name string) {
	if k := l.templates.entry(name); acquire(ctx, k.mu) == nil {
		k.exists = false
		k.mu.Release(1)
	}
}

// touch marks the launch template as used.
func (l *Launcher) touch(ctx context.Context, name string) error {
	k := l.templates.entry(name)
	if err := acquire(ctx, k.mu); err != nil {
		return err
	}
	k.used = l.opts.Clock.Now()
	k.mu.Release(1)
	return nil
}

// AdoptTemplates loads the cluster's launch templates at startup, so that SweepTemplates deletes unused ones of earlier
// processes.
func (l *Launcher) AdoptTemplates(ctx context.Context) error {
	names, err := l.templateNames(ctx, tagFilter(awsv1.TagCluster, l.opts.ClusterName))
	if err != nil {
		return err
	}
	for _, name := range names {
		k := l.templates.entry(name)
		if err := acquire(ctx, k.mu); err != nil {
			return err
		}
		if !k.exists {
			k.exists, k.used = true, l.opts.Clock.Now()
		}
		k.mu.Release(1)
	}
	return nil
}

// SweepTemplates removes requests that are no longer needed. It then deletes the launch templates that were unused for
// TemplateIdle and that no recorded request names. It returns the errors, and continues after each.
func (l *Launcher) SweepTemplates(ctx context.Context) error {
	needed, err := l.sweepRequests(ctx)
	if needed == nil {
		return err
	}
	now := l.opts.Clock.Now()
	l.templates.mu.Lock()
	var idle []string
	for name, k := range l.templates.known {
		if k.mu.TryAcquire(1) { // a template whose mutex is held is in use
			switch {
			case now.Sub(k.used) < TemplateIdle:
			case k.exists:
				idle = append(idle, name)
			default:
				delete(l.templates.known, name)
			}
			k.mu.Release(1)
		}
	}
	l.templates.mu.Unlock()
	failed := []error{err}
	for _, name := range idle {
		if !needed[name] {
			failed = append(failed, l.deleteTemplate(ctx, name, TemplateIdle))
		}
	}
	return errors.Join(failed...)
}

// DeleteTemplates deletes all launch templates of a class that is being deleted.
func (l *Launcher) DeleteTemplates(ctx context.Context, class string) error {
	names, err := l.templateNames(ctx, tagFilter(awsv1.TagCluster, l.opts.ClusterName), tagFilter(awsv1.TagNodeClass, class))
	failed := []error{err}
	for _, name := range names {
		failed = append(failed, l.deleteTemplate(ctx, name, 0))
	}
	return errors.Join(failed...)
}

// deleteTemplate deletes a launch template that was unused for the given time.
func (l *Launcher) deleteTemplate(ctx context.Context, name string, idle time.Duration) error {
	k := l.templates.entry(name)
	if err := acquire(ctx, k.mu); err != nil {
		return err
	}
	defer k.mu.Release(1)
	if idle > 0 && l.opts.Clock.Since(k.used) < idle {
		return nil
	}
	if k.exists || idle == 0 {
		_, err := withRetries(ctx, l, "DeleteLaunchTemplate", l.opts.EC2.DeleteLaunchTemplate,
			&ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)})
		if err != nil && callResultOf(err) != templateMissing {
			return fmt.Errorf("deleting launch template %s: %w", name, err)
		}
	}
	k.exists = false
	return nil
}

package awssim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

func ssmMethods() map[string]method {
	return map[string]method{
		"GetParameter":  {run: getParameter, params: []string{"Name", "WithDecryption"}},
		"GetParameters": {run: getParameters, params: []string{"Names", "WithDecryption"}},
		"GetParametersByPath": {run: getParametersByPath,
			params: []string{"MaxResults", "NextToken", "Path", "Recursive", "WithDecryption"}},
	}
}

// ssmParameter is SSM's Parameter.
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_Parameter.html
type ssmParameter struct {
	ARN              string
	DataType         string
	LastModifiedDate float64
	Name             string
	Type             string
	Value            string
	Version          int
}

func (c *Cloud) ssmParameter(name string) ssmParameter {
	p := c.parameters[name]
	return ssmParameter{"arn:aws:ssm:" + c.opts.Region + "::parameter" + name, "text", float64(p.modified.Unix()),
		name, "String", p.value, p.version}
}

// getParameter implements ssm:GetParameter.
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameter.html
func getParameter(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct {
		Name           string
		WithDecryption bool
	}
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if _, ok := c.parameters[in.Name]; !ok {
		return nil, &apiError{"ParameterNotFound", "", http.StatusBadRequest}
	}
	return map[string]any{"Parameter": c.ssmParameter(in.Name)}, nil
}

// getParameters implements ssm:GetParameters: at most ten names. The response lists unknown names.
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParameters.html
func getParameters(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct {
		Names          []string
		WithDecryption bool
	}
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if len(in.Names) < 1 || len(in.Names) > 10 {
		return nil, &apiError{"ValidationException",
			"Value at 'names' failed to satisfy constraint: Member must have length between 1 and 10", http.StatusBadRequest}
	}
	found, invalid := []ssmParameter{}, []string{}
	for _, name := range in.Names {
		if _, ok := c.parameters[name]; ok {
			found = append(found, c.ssmParameter(name))
		} else {
			invalid = append(invalid, name)
		}
	}
	return map[string]any{"Parameters": found, "InvalidParameters": invalid}, nil
}

// getParametersByPath implements ssm:GetParametersByPath, with at most ten per page.
// https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetParametersByPath.html
func getParametersByPath(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct {
		Path           string
		Recursive      bool
		WithDecryption bool
		MaxResults     int
		NextToken      string
	}
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if in.MaxResults < 0 || in.MaxResults > 10 {
		return nil, &apiError{"ValidationException",
			"Value at 'maxResults' failed to satisfy constraint: Member must have value less than or equal to 10", http.StatusBadRequest}
	}
	prefix := strings.TrimSuffix(in.Path, "/") + "/"
	var names []string
	for name := range c.parameters {
		rest, ok := strings.CutPrefix(name, prefix)
		if ok && (in.Recursive || !strings.Contains(rest, "/")) && name > in.NextToken {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := map[string]any{}
	defaultTo(&in.MaxResults, 10)
	if len(names) > in.MaxResults {
		names = names[:in.MaxResults]
		out["NextToken"] = names[in.MaxResults-1]
	}
	found := []ssmParameter{}
	for _, name := range names {
		found = append(found, c.ssmParameter(name))
	}
	out["Parameters"] = found
	return out, nil
}

// SetParameter sets an SSM parameter, such as a user's own parameter with an image ID.
func (c *Cloud) SetParameter(name, value string) {
	c.locked(func(now time.Time) { c.setParameter(name, value, now) })
}

// DeleteParameter deletes an SSM parameter.
func (c *Cloud) DeleteParameter(name string) {
	c.locked(func(time.Time) { delete(c.parameters, name) })
}

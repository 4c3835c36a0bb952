package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// newControllerLog returns the log, in JSON or for a console, in one style. flush writes buffered lines.
func newControllerLog(o *controllerOptions) (log logr.Logger, flush func(), err error) {
	level := zapcore.InfoLevel
	if o.logLevel != "" {
		if level, err = zapcore.ParseLevel(o.logLevel); err != nil {
			return logr.Logger{}, nil, cli.UsageErrorf("--log-level: %w", err)
		}
	}
	callerKey := ""
	if level == zapcore.DebugLevel {
		callerKey = "caller"
	}
	config := zap.Config{
		Level:             zap.NewAtomicLevelAt(level),
		DisableCaller:     callerKey == "",
		DisableStacktrace: true,
		Encoding:          cmp.Or(o.logEncoding, encodingJSON),
		EncoderConfig: zapcore.EncoderConfig{
			TimeKey: "time", LevelKey: "level", NameKey: "logger", MessageKey: "message", CallerKey: callerKey,
			EncodeTime: zapcore.ISO8601TimeEncoder, EncodeLevel: zapcore.CapitalLevelEncoder, EncodeCaller: zapcore.ShortCallerEncoder,
			EncodeDuration: func(d time.Duration, to zapcore.PrimitiveArrayEncoder) { to.AppendString(d.String()) },
		},
		OutputPaths:      strings.Split(o.logOutputs, ","),
		ErrorOutputPaths: strings.Split(o.errorOutput, ","),
	}
	if config.Encoding == encodingJSON {
		config.InitialFields = buildFields(cli.Commit())
	}
	built, err := config.Build(zap.WrapCore(sampleTrouble))
	if err != nil {
		return logr.Logger{}, nil, cli.UsageErrorf("opening the log (--log-output-paths, --log-error-output-paths): %w", err)
	}
	return inOneStyle(zapr.NewLogger(built)).WithName("controller"), func() { _ = built.Sync() }, nil
}

// These are zap's names of the log encodings.
const (
	encodingJSON    = "json"
	encodingConsole = "console"
)

// infoCore writes every line of level info: a thousand launched nodes give a thousand lines. Of the other levels it
// writes a hundred lines a second with the same message, and every hundredth of the rest.
type infoCore struct {
	zapcore.Core
	sampled zapcore.Core
}

func sampleTrouble(all zapcore.Core) zapcore.Core {
	return infoCore{Core: all, sampled: zapcore.NewSamplerWithOptions(all, time.Second, 100, 100)}
}

// With implements zapcore.Core.
func (c infoCore) With(fields []zapcore.Field) zapcore.Core {
	return infoCore{Core: c.Core.With(fields), sampled: c.sampled.With(fields)}
}

// Check implements zapcore.Core.
func (c infoCore) Check(entry zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if entry.Level == zapcore.InfoLevel {
		return c.Core.Check(entry, to)
	}
	return c.sampled.Check(entry, to)
}

// buildFields returns the fields of every log line: the commit, if the build has it.
func buildFields(commit string) map[string]any {
	if commit == "" {
		return nil
	}
	return map[string]any{"commit": commit}
}

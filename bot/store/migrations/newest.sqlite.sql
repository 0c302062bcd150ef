CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL,
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE deliveries (
	id VARCHAR(64) NOT NULL,
	event VARCHAR(64) NOT NULL,
	payload BLOB NOT NULL,
	received_at DATETIME NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	PRIMARY KEY (id)
);

CREATE INDEX ix_deliveries_state ON deliveries (state);

CREATE TABLE toolchains (
	digest VARCHAR(64) NOT NULL,
	backend VARCHAR(32) NOT NULL,
	provisioner VARCHAR(32) NOT NULL,
	label TEXT NOT NULL,
	python TEXT NOT NULL,
	versions JSON NOT NULL,
	requirements JSON NOT NULL,
	created_at DATETIME NOT NULL, overlay JSON DEFAULT '{}' NOT NULL,
	PRIMARY KEY (digest)
);

CREATE TABLE campaign_cases (
	campaign_id INTEGER NOT NULL,
	rank INTEGER NOT NULL,
	case_id VARCHAR(64) NOT NULL,
	PRIMARY KEY (campaign_id, rank),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);

CREATE INDEX ix_campaign_cases_case_id ON campaign_cases (case_id);

CREATE TABLE findings (
	campaign_id INTEGER NOT NULL,
	case_id VARCHAR(64) NOT NULL,
	classification VARCHAR(24) NOT NULL,
	verdict VARCHAR(24) NOT NULL,
	signature VARCHAR(64) NOT NULL,
	bug_id INTEGER,
	head_failed INTEGER NOT NULL,
	head_runs INTEGER NOT NULL,
	base_failed INTEGER NOT NULL,
	base_runs INTEGER NOT NULL,
	reason TEXT NOT NULL, reduced VARCHAR(64) DEFAULT '' NOT NULL,
	PRIMARY KEY (campaign_id, case_id),
	FOREIGN KEY(bug_id) REFERENCES bugs (id),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);

CREATE TABLE repeats (
	campaign_id INTEGER NOT NULL,
	side VARCHAR(8) NOT NULL,
	case_id VARCHAR(64) NOT NULL,
	number INTEGER NOT NULL,
	verdict VARCHAR(24) NOT NULL,
	body JSON NOT NULL,
	PRIMARY KEY (campaign_id, side, case_id, number),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id)
);

CREATE TABLE outcomes (
	case_id VARCHAR(64) NOT NULL,
	toolchain VARCHAR(64) NOT NULL,
	backend VARCHAR(32) NOT NULL,
	device VARCHAR(32) NOT NULL,
	configuration TEXT NOT NULL,
	verdict VARCHAR(24) NOT NULL,
	body JSON NOT NULL,
	recorded_at DATETIME NOT NULL,
	CONSTRAINT outcomes_key_5 PRIMARY KEY (case_id, toolchain, backend, device, configuration)
);

CREATE INDEX ix_outcomes_toolchain_verdict ON outcomes (toolchain, verdict);

CREATE TABLE "cached_responses" (
	url TEXT NOT NULL,
	etag TEXT NOT NULL,
	body JSON NOT NULL,
	at DATETIME NOT NULL,
	PRIMARY KEY (url)
);

CREATE TABLE installations (
	id BIGINT NOT NULL,
	account TEXT NOT NULL,
	state VARCHAR(16) NOT NULL,
	permissions JSON NOT NULL,
	events JSON NOT NULL,
	changed_at DATETIME NOT NULL, event_count INTEGER DEFAULT '0' NOT NULL,
	PRIMARY KEY (id)
);

CREATE TABLE "rate_limit_pauses" (
	account VARCHAR(32) NOT NULL,
	until DATETIME NOT NULL,
	reason TEXT NOT NULL,
	PRIMARY KEY (account)
);

CREATE TABLE reductions (
	case_id VARCHAR(64) NOT NULL,
	toolchain VARCHAR(64) NOT NULL,
	backend VARCHAR(32) NOT NULL,
	device VARCHAR(32) NOT NULL,
	configuration TEXT NOT NULL,
	reduced VARCHAR(64) NOT NULL,
	reason TEXT NOT NULL,
	runs INTEGER NOT NULL,
	seconds DOUBLE NOT NULL,
	body JSON NOT NULL,
	recorded_at DATETIME NOT NULL,
	PRIMARY KEY (case_id, toolchain, backend, device, configuration)
);

CREATE TABLE "rate_usage" (
	id INTEGER NOT NULL,
	account VARCHAR(32) NOT NULL,
	at DATETIME NOT NULL,
	creates_content BOOLEAN NOT NULL,
	PRIMARY KEY (id)
);

CREATE TABLE retests (
	bug_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	purpose VARCHAR(16) NOT NULL,
	"commit" VARCHAR(64) NOT NULL,
	toolchain VARCHAR(64) NOT NULL,
	runs INTEGER NOT NULL,
	failed INTEGER NOT NULL,
	control_passed BOOLEAN NOT NULL,
	at DATETIME NOT NULL,
	PRIMARY KEY (bug_id, number),
	FOREIGN KEY(bug_id) REFERENCES bugs (id)
);

CREATE TABLE "periodic_tasks" (
	name TEXT NOT NULL,
	done_at DATETIME,
	owner VARCHAR(64) NOT NULL,
	lease_until DATETIME,
	note TEXT NOT NULL,
	saved_state JSON NOT NULL,
	rerun_requested BOOLEAN DEFAULT 0 NOT NULL,
	PRIMARY KEY (name)
);

CREATE INDEX ix_rate_usage_account ON rate_usage (account);

CREATE TABLE target_names (
	id INTEGER NOT NULL,
	name TEXT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (name)
);

CREATE TABLE "audit_events" (
	id INTEGER NOT NULL,
	at DATETIME NOT NULL,
	target_id INTEGER NOT NULL,
	actor TEXT NOT NULL,
	action VARCHAR(32) NOT NULL,
	subject VARCHAR(80) NOT NULL,
	reason TEXT NOT NULL,
	evidence JSON NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT audit_events_target FOREIGN KEY(target_id) REFERENCES target_names (id)
);

CREATE INDEX ix_audit_events_subject ON audit_events (subject);

CREATE TABLE "bugs" (
	id INTEGER NOT NULL,
	target_id INTEGER NOT NULL,
	signature VARCHAR(64) NOT NULL,
	title TEXT NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	issue INTEGER,
	first_seen DATETIME NOT NULL,
	last_seen DATETIME NOT NULL,
	case_id VARCHAR(64) DEFAULT ('') NOT NULL,
	backend VARCHAR(32) DEFAULT ('') NOT NULL,
	device VARCHAR(32) DEFAULT ('') NOT NULL,
	configuration TEXT DEFAULT ('') NOT NULL,
	campaign_id INTEGER,
	seen INTEGER DEFAULT '0' NOT NULL,
	duplicate_of INTEGER,
	resolution VARCHAR(16) DEFAULT ('') NOT NULL,
	fixed_by VARCHAR(64) DEFAULT ('') NOT NULL,
	traits JSON DEFAULT '{}' NOT NULL,
	facts JSON DEFAULT '{}' NOT NULL,
	issue_updated_at DATETIME,
	PRIMARY KEY (id),
	CONSTRAINT bugs_duplicate_of FOREIGN KEY(duplicate_of) REFERENCES bugs (id),
	CONSTRAINT bugs_target FOREIGN KEY(target_id) REFERENCES target_names (id),
	UNIQUE (target_id, signature)
);

CREATE TABLE "campaigns" (
	id INTEGER NOT NULL,
	target_id INTEGER NOT NULL,
	head VARCHAR(64) NOT NULL,
	base VARCHAR(64) NOT NULL,
	ref TEXT NOT NULL,
	"trigger" VARCHAR(64) NOT NULL,
	delivery VARCHAR(64) NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	config JSON NOT NULL,
	seed INTEGER NOT NULL,
	head_toolchain VARCHAR(64),
	base_toolchain VARCHAR(64),
	owner VARCHAR(64) NOT NULL,
	lease_until DATETIME,
	attempts INTEGER NOT NULL,
	created_at DATETIME NOT NULL,
	updated_at DATETIME NOT NULL,
	clock JSON NOT NULL,
	costs JSON DEFAULT '{}' NOT NULL,
	"plan" JSON DEFAULT '{}' NOT NULL,
	pull INTEGER,
	requested_by TEXT DEFAULT ('') NOT NULL,
	overrides JSON DEFAULT '{}' NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT campaigns_target FOREIGN KEY(target_id) REFERENCES target_names (id),
	FOREIGN KEY(head_toolchain) REFERENCES toolchains (digest),
	UNIQUE (target_id, head, base, "trigger"),
	FOREIGN KEY(base_toolchain) REFERENCES toolchains (digest)
);

CREATE INDEX ix_campaigns_state ON campaigns (state);

CREATE TABLE "commands" (
	comment BIGINT NOT NULL,
	position INTEGER NOT NULL,
	target_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	author TEXT NOT NULL,
	text TEXT NOT NULL,
	head VARCHAR(64) NOT NULL,
	role VARCHAR(16) NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	delivery VARCHAR(64) NOT NULL,
	created_at DATETIME NOT NULL,
	done_at DATETIME,
	PRIMARY KEY (comment, position),
	CONSTRAINT commands_target FOREIGN KEY(target_id) REFERENCES target_names (id)
);

CREATE TABLE "effects" (
	"key" VARCHAR(64) NOT NULL,
	kind VARCHAR(32) NOT NULL,
	target_id INTEGER NOT NULL,
	campaign_id INTEGER,
	bug_id INTEGER,
	payload JSON NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	attempts INTEGER NOT NULL,
	not_before DATETIME,
	url TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	sent_at DATETIME,
	number INTEGER,
	depends_on VARCHAR(64) DEFAULT ('') NOT NULL,
	urgent BOOLEAN DEFAULT 0 NOT NULL,
	mode VARCHAR(16) DEFAULT ('') NOT NULL,
	remote_id VARCHAR(64) DEFAULT ('') NOT NULL,
	revision INTEGER DEFAULT '1' NOT NULL,
	sent_revision INTEGER DEFAULT '0' NOT NULL,
	cause VARCHAR(16) DEFAULT ('') NOT NULL,
	PRIMARY KEY ("key"),
	CONSTRAINT effects_target FOREIGN KEY(target_id) REFERENCES target_names (id),
	FOREIGN KEY(campaign_id) REFERENCES campaigns (id),
	FOREIGN KEY(bug_id) REFERENCES bugs (id)
);

CREATE INDEX ix_effects_state ON effects (state);

CREATE TABLE "jobs" (
	id INTEGER NOT NULL,
	"key" VARCHAR(64) NOT NULL,
	kind VARCHAR(32) NOT NULL,
	target_id INTEGER NOT NULL,
	campaign_id INTEGER,
	bug_id INTEGER,
	arguments JSON NOT NULL,
	requested_by TEXT NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	result JSON NOT NULL,
	owner VARCHAR(64) NOT NULL,
	lease_until DATETIME,
	attempts INTEGER NOT NULL,
	created_at DATETIME NOT NULL,
	done_at DATETIME,
	PRIMARY KEY (id),
	CONSTRAINT jobs_target FOREIGN KEY(target_id) REFERENCES target_names (id),
	UNIQUE ("key"),
	FOREIGN KEY(bug_id) REFERENCES bugs (id)
);

CREATE INDEX ix_jobs_state ON jobs (state);

CREATE TABLE "kill_switches" (
	target_id INTEGER NOT NULL,
	reason TEXT NOT NULL,
	set_at DATETIME NOT NULL,
	PRIMARY KEY (target_id),
	CONSTRAINT kill_switches_target FOREIGN KEY(target_id) REFERENCES target_names (id)
);

CREATE TABLE "mutes" (
	id INTEGER NOT NULL,
	target_id INTEGER NOT NULL,
	operator TEXT NOT NULL,
	until DATETIME NOT NULL,
	"by" TEXT NOT NULL,
	reason TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT mutes_target FOREIGN KEY(target_id) REFERENCES target_names (id)
);

CREATE TABLE "proposals" (
	id INTEGER NOT NULL,
	target_id INTEGER NOT NULL,
	signature VARCHAR(64) NOT NULL,
	effect VARCHAR(64) NOT NULL,
	state VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	number INTEGER,
	url TEXT NOT NULL,
	branch TEXT NOT NULL,
	path TEXT NOT NULL,
	test TEXT NOT NULL,
	writer VARCHAR(32) NOT NULL,
	proof JSON NOT NULL,
	requested_by TEXT NOT NULL,
	created_at DATETIME NOT NULL,
	updated_at DATETIME NOT NULL,
	PRIMARY KEY (id),
	CONSTRAINT proposals_target_signature UNIQUE (target_id, signature),
	CONSTRAINT proposals_target FOREIGN KEY(target_id) REFERENCES target_names (id)
);

CREATE INDEX ix_proposals_effect ON proposals (effect);

CREATE TABLE "pulls" (
	target_id INTEGER NOT NULL,
	number INTEGER NOT NULL,
	head VARCHAR(64) NOT NULL,
	base VARCHAR(64) NOT NULL,
	base_ref TEXT NOT NULL,
	head_repository TEXT NOT NULL,
	author TEXT NOT NULL,
	association VARCHAR(32) NOT NULL,
	draft BOOLEAN NOT NULL,
	state VARCHAR(16) NOT NULL,
	approved_head VARCHAR(64) NOT NULL,
	approved_by TEXT NOT NULL,
	updated_at DATETIME NOT NULL,
	stopped_head VARCHAR(64) DEFAULT ('') NOT NULL,
	head_at DATETIME NOT NULL,
	PRIMARY KEY (target_id, number),
	CONSTRAINT pulls_target FOREIGN KEY(target_id) REFERENCES target_names (id)
);

CREATE TABLE "targets" (
	id INTEGER NOT NULL,
	github_id BIGINT,
	installation_id BIGINT,
	state VARCHAR(16) NOT NULL,
	reason TEXT NOT NULL,
	default_branch TEXT NOT NULL,
	private BOOLEAN NOT NULL,
	has_issues BOOLEAN NOT NULL,
	heads JSON NOT NULL,
	policy JSON NOT NULL,
	schedules JSON NOT NULL,
	last_event_at DATETIME,
	reconciled_at DATETIME,
	removed_at DATETIME,
	stable_name TEXT NOT NULL,
	event_count INTEGER DEFAULT '0' NOT NULL,
	polled_at DATETIME,
	PRIMARY KEY (id),
	CONSTRAINT uq_targets_stable_name UNIQUE (stable_name),
	CONSTRAINT targets_target FOREIGN KEY(id) REFERENCES target_names (id),
	FOREIGN KEY(installation_id) REFERENCES installations (id)
);

CREATE INDEX ix_targets_github_id ON targets (github_id);

CREATE INDEX ix_audit_events_target_id ON audit_events (target_id);

CREATE INDEX ix_campaigns_target_id ON campaigns (target_id);

CREATE INDEX ix_commands_target_id ON commands (target_id);

CREATE INDEX ix_effects_target_id ON effects (target_id);

CREATE INDEX ix_jobs_target_id ON jobs (target_id);

CREATE INDEX ix_mutes_target_id ON mutes (target_id);

insert into alembic_version values ('0013');


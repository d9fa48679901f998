"""Make the group whose members may review, with the permission that lets them."""

from django.contrib.auth.management import create_permissions
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps


def open_group(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    # Permissions are otherwise made only after the last migration has run.
    leaderboard = apps.get_app_config("leaderboard")
    leaderboard.models_module = True  # type: ignore[assignment]
    create_permissions(leaderboard, verbosity=0, apps=apps, using=schema_editor.connection.alias)
    leaderboard.models_module = None
    group, _ = apps.get_model("auth", "Group").objects.get_or_create(name="reviewers")
    group.permissions.add(
        apps.get_model("auth", "Permission").objects.get(
            content_type__app_label="leaderboard", codename="add_review"
        )
    )


class Migration(migrations.Migration):
    dependencies = [
        ("leaderboard", "0001_first_tables"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [migrations.RunPython(open_group, migrations.RunPython.noop)]
